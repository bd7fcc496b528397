"""The prompts in Spanish."""

from .layout import Words

_ANSWER = (
    "Cada vez que se te pregunte, responde con una sola jugada legal y nada más. "
    "En lugar de una jugada puedes responder `abandono`, o `tablas` para ofrecerlas o aceptarlas."
)

SPANISH = Words(
    code="es",
    system={
        "chess": "Eres un jugador de ajedrez fuerte. Juegas una partida con las reglas usuales. "
        "Las blancas mueven primero. Se te muestran todas las jugadas de la partida, de la más "
        "antigua a la más reciente. Las piezas se escriben con letras inglesas (K Q R B N). "
        + _ANSWER,
        "janggi": "Eres un jugador fuerte de janggi (ajedrez coreano). El tablero tiene columnas "
        "de la a a la i y filas del 1 al 10; Cho (mayúsculas) empieza en las filas 1 a 4 y mueve "
        "primero, Han (minúsculas) en las filas 7 a 10. Los palacios son d1-f3 y d8-f10. "
        "R carro: cualquier distancia en línea recta, también por las diagonales del palacio. "
        "C cañón: salta en línea recta sobre exactamente una pieza; ni esa pieza ni la capturada "
        "pueden ser un cañón. N caballo: un paso recto y uno en diagonal hacia fuera; "
        "B elefante: un paso recto y dos en diagonal hacia fuera; ambos pueden ser bloqueados. "
        "K general y A guardia: un paso por las líneas de su palacio. "
        "P soldado: un paso adelante o de lado, nunca atrás. "
        "El jaque debe responderse; el mate gana. Se puede pasar, escribiendo dos veces la casilla "
        "del general. Dos pases seguidos, o un pase con los generales enfrentados (bikjang), "
        "pueden acabar la partida por puntos: R 13, C 7, N 5, B 3, A 3, P 2, y 1.5 más para Han. "
        "Se te muestran todas las jugadas, de la más antigua a la más reciente. " + _ANSWER,
    },
    notation="Escribe las jugadas en {notation}, por ejemplo {example}.",
    start="Posición inicial: {fen}",
    moves="Jugadas: {moves}",
    no_moves="Jugadas: ninguna todavía",
    fen="Posición (FEN): {fen}",
    board="Tablero:\n{board}",
    legal="Jugadas legales: {moves}",
    side="Juegas con {side}.",
    sides={"white": "blancas", "black": "negras", "cho": "Cho", "han": "Han"},
    points="Puntos: {first} {first_points}, {second} {second_points}.",
    check="Estás en jaque.",
    repeated="Esta posición se ha dado {times} veces.",
    bikjang="Los generales están enfrentados (bikjang).",
    opponent_passed="Tu rival ha pasado.",
    pass_effect={
        "illegal": "No puedes pasar.",
        "continues": "",
        "wins": "Pasar ahora acaba la partida y ganas.",
        "loses": "Pasar ahora acaba la partida y pierdes.",
        "draws": "Pasar ahora acaba la partida en tablas.",
    },
    quiet_left="Quedan {plies} medias jugadas hasta el fin por falta de progreso.",
    plies_left="Quedan {plies} medias jugadas.",
    draw_offered="Tu rival ofrece tablas.",
    no_resign="No puedes abandonar.",
    no_draw_offer="No puedes ofrecer tablas.",
    ask="Tu jugada:",
)

#!/bin/sh
# A remote player in shell: answers a tournament's requests with a legal move.
#
#     examples/mqtt_player.sh lab-1 localhost 1883 &
#     arena play "mqtt:lab-1?broker=mqtt://localhost" random
#
# Needs mosquitto-clients 2. Another player only needs another `choose`. MQTT_USER and MQTT_PASSWORD
# name an account. The same request always gets the same answer, so one that comes twice is harmless.
set -eu

name=${1:?usage: mqtt_player.sh NAME [HOST] [PORT] [PREFIX]}
host=${2:-localhost}
port=${3:-1883}
topics=${4:-madang}/agents/$name
account=${MQTT_USER:+-u $MQTT_USER -P ${MQTT_PASSWORD:-}}

publish() { # topic message [more options]
    to=$1 message=$2
    shift 2
    # shellcheck disable=SC2086  # the account is several words
    mosquitto_pub -V mqttv5 -h "$host" -p "$port" $account -q 1 -t "$to" -m "$message" "$@"
}

choose() { # a request's JSON, on one line -> one of its legal moves, another at every ply
    printf '%s\n' "$1" | awk '{
        list = $0
        sub(/.*"legal": \[/, "", list)
        sub(/\].*/, "", list)
        gsub(/[" ]/, "", list)
        print legal(list, length($0))
    }
    function legal(list, salt,   moves) { return moves[1 + salt % split(list, moves, ",")] }'
}

folder=$(mktemp -d)
mkfifo "$folder/requests"
# shellcheck disable=SC2086
mosquitto_sub -V mqttv5 -h "$host" -p "$port" $account -q 1 -t "$topics/request" \
    --will-topic "$topics/status" --will-payload offline --will-retain --will-qos 1 \
    -F '%D\t%R\t%p' > "$folder/requests" &
listener=$!
leave() {
    trap - EXIT INT TERM
    kill "$listener" 2> /dev/null || true
    rm -r "$folder"
    publish "$topics/status" offline -r || true
    exit
}
trap leave EXIT INT TERM

publish "$topics/status" online -r # a request that comes before the listener is sent again
while IFS='	' read -r correlation back request; do
    publish "$back" "$(choose "$request")" -D publish correlation-data "$correlation"
done < "$folder/requests"

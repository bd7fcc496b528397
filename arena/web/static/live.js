// Follows a run's events. A browser reconnects by itself and says what it had last; where the
// server refuses (full, restarting) we come back later with the last number that we have.

const AGAIN_MS = 2000;

// on: {message(event), reset(), link(connected)}; message returns nothing.
export function follow(run, game, seq, on) {
  let source = null, timer = null, last = seq, stopped = false;

  function connect() {
    const query = new URLSearchParams({ after: last, ...(game ? { game } : {}) });
    source = new EventSource(`/api/runs/${run}/events?${query}`);
    source.onopen = () => on.link(true);
    source.onmessage = (event) => {
      last = Number(event.lastEventId);
      on.message(JSON.parse(event.data));
    };
    source.addEventListener("reset", (event) => {
      last = Number(event.lastEventId);
      on.reset();
    });
    source.onerror = () => {
      on.link(false);
      if (source.readyState === EventSource.CLOSED && !stopped) {
        clearTimeout(timer);
        timer = setTimeout(connect, AGAIN_MS);
      }
    };
  }

  connect();
  return () => {
    stopped = true;
    clearTimeout(timer);
    source.close();
  };
}

export async function json(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

// Try until it works: a page that lost the server must not stay on an old position.
export async function persist(work) {
  for (;;) {
    try {
      return await work();
    } catch {
      await new Promise((wake) => setTimeout(wake, AGAIN_MS));
    }
  }
}

export function showLink(node, connected) {
  node.textContent = connected ? "" : "Connection lost, trying again…";
  node.classList.toggle("lost", !connected);
}

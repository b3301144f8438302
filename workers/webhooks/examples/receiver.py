"""A receiver of webhooks, to copy from. It needs Python 3.9 and nothing else. README.md beside this file explains it."""
import hashlib, hmac, json, os, re, sqlite3, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

if len(sys.argv) != 3:
    sys.exit("usage: WEBHOOK_SECRETS=SECRET python3 receiver.py FILE PORT")
SECRETS = os.environ.get("WEBHOOK_SECRETS", "").split()  # while a secret is changed: the new one and the old one
if not SECRETS or "whsec_" in SECRETS:  # anybody could sign with an empty one
    sys.exit("WEBHOOK_SECRETS must have the secret of the webhook")
MOST_BODY_BYTES = 16 * 1024 * 1024  # the service sends at most 12 MiB
CLOCK_SECONDS = 300

store = sqlite3.connect(sys.argv[1], check_same_thread=False)
lock = threading.Lock()  # each connection of the service has a thread here
store.executescript("""
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS events (event_id TEXT PRIMARY KEY, name TEXT, body TEXT);
    CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, updated_at TEXT, name TEXT);
""")


def is_ours(signature, body):
    """Whether one of the secrets signed these bytes, and not long ago."""
    match = re.fullmatch(r"t=([0-9]{1,12})((?:,v1=[0-9a-f]{64})+)", signature or "")
    if match is None or abs(time.time() - int(match[1])) > CLOCK_SECONDS:
        return False
    signed = match[1].encode() + b"." + body
    expected = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in SECRETS]
    given = match[2].split(",v1=")[1:]
    return any(hmac.compare_digest(one, other) for one in given for other in expected)


def keep(event):
    """Stores the event once, however often it comes; and the newest state of its run, however late an older one comes."""
    with lock, store:  # one transaction, on the disk before the service gets its answer
        row = (event["event_id"], event["event_name"], json.dumps(event))
        if store.execute("INSERT OR IGNORE INTO events VALUES (?, ?, ?)", row).rowcount == 0:
            return "again"
        data = event["data"]
        if "run_id" in data:
            newest = """INSERT INTO runs VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET updated_at = excluded.updated_at,
                name = excluded.name WHERE excluded.updated_at > runs.updated_at"""
            store.execute(newest, (data["run_id"], data["updated_at"], event["event_name"]))
        return "new"


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # the service keeps the connection for the next event
    timeout = 60

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,15}", length):  # the service always says how long the body is
            return self.answer(411)
        if int(length) > MOST_BODY_BYTES:
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not is_ours(self.headers.get("X-Service-Signature"), body):
            print("refused: none of the secrets signed it, or long ago", flush=True)
            return self.answer(401)
        event = json.loads(body)
        try:
            print(event["event_name"], keep(event), flush=True)
        except sqlite3.Error as error:  # a 5xx: the service sends it again
            print(error, file=sys.stderr)
            return self.answer(503)
        self.answer(204)

    def answer(self, status):
        self.close_connection = status != 204
        self.send_response(status)
        self.send_header("Content-Length", "0") if status != 204 else None
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Receiver)
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()

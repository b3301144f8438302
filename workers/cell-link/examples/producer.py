"""A producer of the cell link, to copy from. It needs Python 3.9 and msgpack. README.md beside this file explains it."""
import random, socket, struct, time, uuid
import msgpack

HEADER = struct.Struct("<4sBBHQII")  # magic, version, kind, 0, sequence number, bytes of the body, bytes of the payload
HELLO, WELCOME, MESSAGE, ACK, REFUSE = 1, 2, 3, 4, 5
ANOTHER_TRY = {"unavailable", "sequence_gap", "sequence_taken"}  # these refuse a connection, and only for now
MOST_UNANSWERED = 1_000


class Producer:
    """Keeps every message until it is answered, and sends it again after a break: so each one counts once."""

    def __init__(self, path, name):
        self.path, self.name = path, name
        self.instance = str(uuid.uuid4())  # names this queue: the service knows by it what it has of it
        self.unanswered = {}  # sequence number: (body, payload), oldest first
        self.last_run_id = None
        self.connect()

    def connect(self):
        """Connects until the service welcomes it, numbers the queue anew, and sends it."""
        attempt = 0
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(self.path)
                hello = {"protocol": 1, "producer": self.name, "instance": self.instance}
                self.write(HELLO, 0, hello)
                kind, _, body = self.read()
                if kind == REFUSE:
                    self.refused_connection(body)
                self.last_run_id = max(self.last_run_id or "", body["last_run_id"] or "") or None
                # The service has up to `yours` of this queue, and answers these again. The others get new numbers.
                known = {n: message for n, message in self.unanswered.items() if n <= body["yours"]}
                others = [message for n, message in self.unanswered.items() if n > body["yours"]]
                self.next = body["committed"] + 1 + len(others)
                self.unanswered = {**known, **dict(enumerate(others, body["committed"] + 1))}
                for number, (body, payload) in self.unanswered.items():
                    self.write(MESSAGE, number, body, payload)
                return
            except OSError:
                self.socket.close()
                time.sleep(min(2, 0.05 * 2**attempt) * random.uniform(0.5, 1))
                attempt = min(attempt + 1, 6)

    def write(self, kind, number, body, payload=b""):
        packed = msgpack.packb(body)
        header = HEADER.pack(b"CLK1", 1, kind, 0, number, len(packed), len(payload))
        self.socket.sendall(header + packed + bytes(-len(packed) % 8) + payload)

    def read(self):
        """The kind, number and body of the next frame. Frames of the service have no payload."""
        _, _, kind, _, number, length, _ = HEADER.unpack(self.read_bytes(HEADER.size))
        body = self.read_bytes(length + -length % 8)[:length]
        return kind, number, msgpack.unpackb(body) if body else None

    def read_bytes(self, count):
        data = b""
        while len(data) < count:
            chunk = self.socket.recv(count - len(data))
            if not chunk:
                raise ConnectionResetError("the service closed the connection")
            data += chunk
        return data

    def refused_connection(self, refusal):
        error = ConnectionResetError if refusal["code"] in ANOTHER_TRY else RuntimeError
        raise error(f"the service refuses this producer: {refusal}")

    def send(self, body, payload=b""):
        """Sends a message. It is durable after `wait`."""
        while len(self.unanswered) >= MOST_UNANSWERED:
            self.take_answer()
        number, self.next = self.next, self.next + 1
        self.unanswered[number] = (body, payload)
        try:
            self.write(MESSAGE, number, body, payload)
        except OSError:
            self.connect()

    def take_answer(self):
        try:
            kind, number, body = self.read()
            if kind == ACK:  # for this message and all before it
                for known in [n for n in self.unanswered if n <= number]:
                    del self.unanswered[known]
            elif kind == REFUSE and number in self.unanswered and body["code"] not in ANOTHER_TRY:
                raise ValueError(f"refused: {self.unanswered.pop(number)[0]}: {body}")
            elif kind == REFUSE:
                self.refused_connection(body)
        except OSError:
            self.socket.close()
            self.connect()

    def wait(self):
        """Returns when every message is answered. Raises when one was refused; then call it again for the others."""
        while self.unanswered:
            self.take_answer()

    def new_run_id(self):
        """An id above that of every run which the service has named, and above the last one of this producer."""
        after = uuid.UUID(self.last_run_id).int + 1 if self.last_run_id else 0
        self.last_run_id = str(uuid.UUID(int=max(new_id().int, after)))
        return self.last_run_id


def new_id():
    """A UUIDv7: 48 bits of the time in milliseconds, then random bits."""
    milliseconds = int(time.time() * 1000)
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | random.getrandbits(12) << 64 | 2 << 62 | random.getrandbits(62))

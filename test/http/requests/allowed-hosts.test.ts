import t from "tap";
import { ServiceError } from "../../../core/service-errors.js";
import { AllowedHosts, machineNames } from "../../../http/requests/allowed-hosts.js";

const hosts = new AllowedHosts(["Cell-7.Factory", "cell-7", "xn--bcher-kva.example", "dotted."]);

function refusal(host: string) {
  try {
    hosts.check(host);
    return undefined;
  } catch (error) {
    if (error instanceof ServiceError) return error.data;
    throw error;
  }
}

t.test("addresses, localhost and the names given, with and without a port", async (t) => {
  const allowed = [
    ...["127.0.0.1", "10.1.2.3", "8.8.8.8", "[::1]", "[FE80::1]", "[::ffff:10.0.0.1]", "127.0.0.1."],
    ...["localhost", "LocalHost", "localhost.", "app.localhost", "a.b.localhost."],
    ...["cell-7", "CELL-7", "cell-7.", "cell-7.factory", "CELL-7.FACTORY.", "xn--bcher-kva.example", "dotted"],
  ];
  for (const host of allowed) {
    for (const port of ["", ":8000", ":80", ":65535"]) t.equal(refusal(host + port), undefined, host + port);
  }
});

t.test("any other name is refused, and the error says which option would take it", async (t) => {
  const foreign = [
    ...["evil.example", "cell-7.evil.example", "evil-cell-7", "cell-7.factory.evil.example", "factory"],
    ...["localhost.evil.example", "evillocalhost", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "cell-7.."],
    // No notations of addresses that clients send.
    ...["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::::]", "[1.2]"],
  ];
  for (const host of foreign) {
    for (const port of ["", ":8000"]) {
      t.match(
        refusal(host + port),
        { code: "misdirected_request", params: { field: "host", in: "header", value: host + port } },
        host + port,
      );
    }
  }
  t.match(refusal("Evil.Example:8000")?.message, /--allowed-host evil\.example$/);
});

t.test("the machine's names", async (t) => {
  t.same(machineNames("cell-7", "", ""), ["cell-7", "cell-7", "cell-7.local"]);
  const resolver =
    "# search not.this\nnameserver 10.0.0.53\nsearch factory.example  line.factory.example .\ndomain old.example\n";
  t.same(machineNames("cell-7.factory.example", resolver, ""), [
    ...["cell-7.factory.example", "cell-7", "cell-7.factory.example", "cell-7.line.factory.example"],
    ...["cell-7.old.example", "cell-7.local"],
  ]);
  t.same(machineNames("", "search factory.example", ""), [], "a machine without a name");
  const hosts = "127.0.0.1 localhost\n127.0.1.1\tcell-7.plant.example cell-7 # cell-7.not.this\n10.0.0.9 mes cell-70\n";
  t.same(machineNames("cell-7", "", hosts), [
    ...["cell-7", "cell-7", "cell-7.local", "cell-7.plant.example", "cell-7"],
  ]);
});

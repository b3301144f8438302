import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Test } from "tap";
import { temporaryDirectory } from "../recorder/recorder-harness.js";
import { until } from "../until.js";

const POLL_MS = 50;
/** What may reach the machine outside is not started: it would set its clock, its modules, its devices. */
const MASKED = [
  "sysctl",
  "modules-load",
  "udevd",
  "udev-trigger",
  "binfmt",
  "random-seed",
  "timesyncd",
  "tmpfiles-setup-dev",
];
const DROPPED = ["sys_module", "sys_time", "sys_rawio", "syslog", "sys_boot"].map((name) => `-${name}`).join(",");

/**
 * Run in namespaces of its own: the files of this machine below an overlay that keeps all changes, and systemd as the first process. $1 is a
 * folder for the mounts, $2 a name for the group of processes.
 */
const BOOT = `
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/groups"
mount -t cgroup2 cgroup2 "$1/groups"
mkdir -p "$1/groups/$2"
echo 0 >"$1/groups/$2/cgroup.procs"
umount "$1/groups"
root="$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs "$root/$folder"; done
chmod 1777 "$root/tmp"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/dev/shm"
ip link set lo up
rm -rf "$root"/etc/systemd/system/*.wants
# Images for containers forbid by this file that packages start their services.
rm -f "$root/usr/sbin/policy-rc.d"
# No index of all manual pages with each change of a package.
rm -f "$root/var/lib/man-db/auto-update"
for name in ${MASKED.join(" ")}; do ln -sf /dev/null "$root/etc/systemd/system/systemd-$name.service"; done
printf '[Unit]\\nRequires=sysinit.target\\nAfter=sysinit.target\\n' >"$root/etc/systemd/system/private.target"
export container=private
exec unshare --cgroup sh -c 'mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
    mkdir "$1/run/before"
    cd "$1"
    pivot_root . run/before
    umount -l /run/before
    exec setpriv --bounding-set ${DROPPED} /lib/systemd/systemd --unit=private.target' sh "$root"
`;

/** The processes of a system that was ended leave empty groups, once all of them are gone. */
const SWEEP = `
mount -t cgroup2 cgroup2 "$1"
while [ -d "$1/$2" ] && ! find "$1/$2" -depth -type d -exec rmdir {} + 2>/dev/null; do sleep 0.05; done
`;

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** A system of its own for a test: it has the files of this machine, may change all of them, and has its own services, accounts and network. */
export class PrivateSystem {
  readonly #firstPid: number;

  private constructor(firstPid: number) {
    this.#firstPid = firstPid;
  }

  /** Why there can be none here; false where there can be one. For `skip` of a test. */
  static missing(): string | false {
    if (process.platform !== "linux" || process.getuid?.() !== 0) return "it needs Linux and root";
    const needed = ["unshare", "nsenter", "setpriv", "ip", "dpkg", "systemctl"];
    const absent = needed.filter((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0);
    if (absent.length > 0) return `not installed: ${absent.join(", ")}`;
    const mounts =
      "mount -t tmpfs tmpfs /mnt && mkdir /mnt/u /mnt/w /mnt/m /mnt/c && mount -t cgroup2 cgroup2 /mnt/c && ";
    const overlay = "mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w /mnt/m";
    const tried = spawnSync("unshare", ["--mount", "--pid", "--net", "--fork", "sh", "-c", mounts + overlay]);
    return tried.status === 0 ? false : `this machine allows no system of its own: ${tried.stderr}`.trim();
  }

  /** The end of the test ends all of its processes. */
  static async startFor(t: Test): Promise<PrivateSystem> {
    const folder = temporaryDirectory(t);
    const group = `inspection-test-${process.pid}-${Date.now()}`;
    const namespaces = ["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"];
    const boot = spawn("unshare", [...namespaces, "sh", "-c", BOOT, "sh", folder, group], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    boot.stderr.on("data", (chunk: Buffer) => (said += chunk));
    const ended = new Promise((resolve) => boot.once("close", resolve));
    const killed = () => boot.kill("SIGKILL");
    process.once("exit", killed);
    t.teardown(async () => {
      killed();
      await ended;
      process.off("exit", killed);
      spawnSync("unshare", ["--mount", "sh", "-c", SWEEP, "sh", folder, group], { timeout: 20_000 });
    });
    const system = new PrivateSystem(await firstChildOf(boot));
    for (;;) {
      if (boot.exitCode !== null) throw new Error(`the system ended with ${boot.exitCode}: ${said}`);
      const { stdout } = await system.run("systemctl is-system-running --wait");
      if (/^(running|degraded)$/m.test(stdout)) return system;
      await pause(POLL_MS);
    }
  }

  /** Runs the commands by bash, as root. \`sudo\` is there, as far as these commands need it. */
  run(commands: string, input = ""): Promise<Ran> {
    const sudo = `sudo() { if [ "$1" = -u ]; then local user=$2; shift 2; setpriv --reuid "$user" --regid "$user" --init-groups "$@"; else "$@"; fi; }`;
    // A system that is still booting has no root of its own yet: then the commands fail.
    const enter = ["-t", String(this.#firstPid), "-m", "-p", "-n", "-i", "-u", "-r", "-w", "bash", "--norc", "-c"];
    const env = {
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      HOME: "/root",
      LANG: "C.UTF-8",
    };
    return new Promise((resolve) => {
      const child = execFile(
        "nsenter",
        [...enter, `cd /root\n${sudo}\n${commands}`],
        { env: { ...env, DEBIAN_FRONTEND: "noninteractive" }, maxBuffer: 1 << 26 },
        (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
      // Before the system has a root of its own, there may be no bash to read it.
      child.stdin?.on("error", () => {});
      child.stdin?.end(input);
    });
  }

  /** Puts a file there. @param path from the root of the system */
  async put(path: string, content: Buffer | string): Promise<void> {
    const text = Buffer.from(content).toString("base64");
    const { code, stderr } = await this.run(`base64 -d >'${path}'`, text);
    if (code !== 0) throw new Error(stderr);
  }
}

async function firstChildOf({ pid }: ChildProcess): Promise<number> {
  let children = "";
  await until(`the first child of process ${pid}`, () => {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
    return children !== "";
  });
  return Number(children.split(" ")[0]);
}

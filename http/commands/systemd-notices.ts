import { spawn } from "node:child_process";

/** What the service tells systemd (sd_notify(3)), if its unit has Type=notify. */
export interface SystemdNotices {
  /** It answers. From now on systemd also hears that it still does, if the unit has WatchdogSec=. @param status for `systemctl status`, one line */
  ready(status: string): void;
  stopping(): void;
}

/**
 * Node has no datagrams over Unix sockets, so systemd-notify(1) sends them. A shell starts it for each line that it reads: to fork a shell is
 * cheap, to fork the service is not.
 */
const SENDER = 'while read -r line; do systemd-notify "$line"; done';

/** Pause before a sender that ended is started again; well below any WatchdogSec=. */
const RESTART_MS = 1_000;

/**
 * The watchdog is fed by the timers of this thread, the front's. If it hangs, nothing is answered, and a restart helps. A disk that hangs is
 * none of the watchdog's business: reads go on then.
 *
 * @param environment as systemd sets it: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. Without a socket nothing is done.
 * @param complain takes a line for people when systemd cannot be told
 */
export function systemdNotices(environment: NodeJS.ProcessEnv, complain: (line: string) => void): SystemdNotices {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: watchdogUs, WATCHDOG_PID: watchdogPid } = environment;
  if (socket === undefined || socket === "") return { ready() {}, stopping() {} };
  let sender = startSender(onEnd);
  function onEnd(how: string): void {
    complain(`systemd cannot be told anything: ${how}; it is tried again`);
    // Without notices systemd would end a service that answers.
    setTimeout(() => {
      sender = startSender(onEnd);
    }, RESTART_MS).unref();
  }
  function startSender(onEnd: (how: string) => void) {
    const started = spawn("/bin/sh", ["-c", SENDER], { stdio: ["pipe", "ignore", "pipe"] });
    let failure = "";
    started.on("error", ({ message }) => {
      failure = message;
    });
    started.on("close", (code, signal) => onEnd(failure || `the shell that tells it ended with ${signal ?? code}`));
    started.stderr.on("data", (said: Buffer) =>
      complain(`systemd could not be told something: ${said.toString().trim()}`),
    );
    // It ends with the service, which also ends while it is there.
    started.stdin.on("error", () => {});
    started.unref();
    for (const pipe of [started.stdin, started.stderr]) (pipe as unknown as { unref(): void }).unref();
    return started;
  }
  const tell = (line: string): void => void sender.stdin.write(`${line}\n`);
  return {
    ready(status) {
      tell(`STATUS=${status}`);
      tell("READY=1");
      const intervalMs = Number(watchdogUs) / 2_000;
      const isForUs = watchdogPid === undefined || watchdogPid === String(process.pid);
      if (intervalMs > 0 && isForUs) setInterval(() => tell("WATCHDOG=1"), intervalMs).unref();
    },
    stopping: () => tell("STOPPING=1"),
  };
}

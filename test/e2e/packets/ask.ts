import type { NetnsView } from '../../../sim/support/netns.ts';

const LIMIT_S = 10;

/** One shell: to start Node for each question takes twenty times as long. */
const SCRIPTS = {
  tcp: 'exec 3<>"/dev/tcp/$0/$1" && echo once >&3 && cat <&3',
  // A first UDP packet may be lost to neighbour discovery. `dd` takes a packet with one read; `read` of the shell cuts it.
  udp: `exec 3<>"/dev/udp/$0/$1"
    while ! { printf once >&3 && timeout 0.7 dd bs=512 count=1 status=none <&3; }; do sleep 0.1; done`,
};

/** Asks a who-server once from within a namespace. Returns its answer, "" when none comes in time. */
export async function askWho(from: NetnsView, protocol: 'tcp' | 'udp', host: string, port: number): Promise<string> {
  const argv = ['timeout', String(LIMIT_S), 'bash', '-c', SCRIPTS[protocol], host, String(port)];
  return (await from.tryRun(argv)).stdout.trim();
}

// One packet that finds the way, then the one whose answers are counted.
const COUNT_SCRIPT = `exec 3<>"/dev/udp/$0/$1"
  while ! { printf first >&3 && timeout 0.7 dd bs=512 count=1 status=none <&3 >/dev/null; }; do sleep 0.1; done
  while timeout 0.5 dd bs=512 count=1 status=none <&3 >/dev/null; do :; done
  printf second >&3
  timeout 5 dd bs=512 count=1 status=none <&3
  while timeout 0.5 dd bs=512 count=1 status=none <&3; do :; done`;

/** Asks a who-server by one UDP packet and counts the answers: two where a packet arrives twice. */
export async function countAnswers(from: NetnsView, host: string, port: number): Promise<number> {
  const { stdout } = await from.tryRun(['timeout', String(LIMIT_S), 'bash', '-c', COUNT_SCRIPT, host, String(port)]);
  return stdout.split('\n').filter((line) => line !== '').length;
}

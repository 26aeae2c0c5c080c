import { fileURLToPath } from 'node:url';
import type { Child } from '../../sim/support/child.ts';
import { isObject, type JsonObject, type NetnsView } from '../../sim/support/netns.ts';
import type { LedgerReport } from './number-ledger.ts';
import { waitUntil } from './wait-until.ts';

/** One end of a stream. */
export type TrafficEnd = { readonly netns: NetnsView; readonly ip: string };

/** What a stream is like. */
type TrafficOptions = {
  /** UDP port on both ends; default 7000. */
  readonly port?: number;
  /** Packets per second in each direction; default 10,000. */
  readonly rate?: number;
  /** Send from `b` to `a` as well; default true. */
  readonly bothWays?: boolean;
};

/** What became of one direction of a stream. */
type DirectionReport = LedgerReport & {
  /** Numbers sent. */
  readonly sent: number;
  /** Sends that the sender's own kernel refused: no route, ENETUNREACH, EPERM. */
  readonly sendErrors: number;
  /** Packets that reached the receiver's socket and found its buffer full: the machine was too slow, not the path. */
  readonly socketDrops: number;
  /** Numbers that never arrived, `socketDrops` taken off. */
  readonly lost: number;
};

/** Both directions of a stream. */
export type TrafficReport = { readonly aToB: DirectionReport; readonly bToA: DirectionReport };

/** A running stream. */
export type Traffic = {
  /** Stops sending, waits for what is on its way, and says what became of every number. Ends the processes. */
  finish(): Promise<TrafficReport>;
  /** Ends the processes without a report. Idempotent. */
  close(): Promise<void>;
};

/** How long after the last packet that was read another one may still be on its way, milliseconds. */
const DRAIN_MS = 1_000;

/**
 * Starts numbered UDP packets between two namespaces and returns once both ends have heard each other. The caller
 * finishes or closes it.
 * @throws Error when the ends do not hear each other within 30 s
 */
export async function startTraffic(a: TrafficEnd, b: TrafficEnd, options: TrafficOptions = {}): Promise<Traffic> {
  const { port = 7000, rate = 10_000, bothWays = true } = options;
  const endA = new Endpoint(a, b.ip, port, rate);
  const endB = new Endpoint(b, a.ip, port, bothWays ? rate : 0);
  const close = async (): Promise<void> => {
    await Promise.all([endA.close(), endB.close()]);
  };
  try {
    await Promise.all([endA.await('bound'), endB.await('bound')]);
    await Promise.all([endA.ask('greet', 'ready'), endB.ask('greet', 'ready')]);
    // Packets that arrive from here on are numbers: those that a buffer has no room for are counted at both ends.
    await Promise.all([endA.ask('arm', 'armed'), endB.ask('arm', 'armed')]);
    endA.tell('start');
    endB.tell('start');
  } catch (error) {
    await close();
    throw error;
  }
  return {
    finish: async () => {
      try {
        return await finish(endA, endB);
      } finally {
        await close();
      }
    },
    close,
  };
}

/** Says in one line per direction what went wrong; empty when every number arrived once. */
export function describeLoss(report: TrafficReport): readonly string[] {
  return (['aToB', 'bToA'] as const).flatMap((direction) => {
    const { sent, lost, duplicates, sendErrors, gaps } = report[direction];
    if (lost === 0 && duplicates === 0 && sendErrors === 0) return [];
    const where = gaps.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(' ');
    return [
      `${direction}: ${lost} of ${sent} lost, ${duplicates} doubled, ${sendErrors} refused at once; missing: ${where}`,
    ];
  });
}

async function finish(a: Endpoint, b: Endpoint): Promise<TrafficReport> {
  const [sentA, sentB] = await Promise.all([a.ask('stop', 'stopped'), b.ask('stop', 'stopped')]);
  await Promise.all([b.drain(Number(sentA['sent'])), a.drain(Number(sentB['sent']))]);
  const [reportA, reportB] = await Promise.all([a.ask('report', 'report'), b.ask('report', 'report')]);
  return { aToB: direction(reportA, reportB), bToA: direction(reportB, reportA) };
}

function direction(sender: JsonObject, receiver: JsonObject): DirectionReport {
  const ledger = receiver as unknown as LedgerReport;
  const sent = Number(sender['sent']);
  const socketDrops = Number(receiver['socketDrops']);
  const missing = sent - ledger.received;
  return { ...ledger, sent, sendErrors: Number(sender['sendErrors']), socketDrops, lost: missing - socketDrops };
}

/** Talks to one `traffic-endpoint.ts` process. */
class Endpoint {
  #child: Child;
  #read = 0;
  #end: TrafficEnd;

  constructor(end: TrafficEnd, peer: string, port: number, rate: number) {
    const script = fileURLToPath(new URL('traffic-endpoint.ts', import.meta.url));
    this.#end = end;
    this.#child = end.netns.start([process.execPath, script, end.ip, peer, `${port}`, `${rate}`]);
  }

  tell(command: string): void {
    this.#child.writeLine(command);
  }

  ask(command: string, event: string): Promise<JsonObject> {
    this.tell(command);
    return this.await(event);
  }

  await(event: string): Promise<JsonObject> {
    return waitUntil(() => this.#next(event), {
      what: `traffic end ${this.#end.ip} in ${this.#end.netns.name}: ${event}`,
      explain: () => this.#child.stderr,
    });
  }

  /** Waits until `sent` numbers arrived or nothing can be on its way any more. */
  async drain(sent: number): Promise<void> {
    let before = -1;
    for (let deadline = 0; ; ) {
      const received = Number((await this.ask('count', 'count'))['received']);
      // A receiver that has to wait for a core reads its full buffer for longer than that.
      if (received > before) deadline = performance.now() + DRAIN_MS;
      before = received;
      if (received >= sent || performance.now() > deadline) return;
    }
  }

  async close(): Promise<void> {
    await this.#child.stop('SIGTERM', 1_000);
  }

  #next(event: string): JsonObject | undefined {
    if (!this.#child.isRunning) throw new Error(`traffic end ${this.#end.ip} ended: ${this.#child.stderr}`);
    const lines = this.#child.stdout.split('\n').slice(0, -1);
    for (; this.#read < lines.length; this.#read++) {
      const message: unknown = JSON.parse(lines[this.#read] ?? 'null');
      if (isObject(message) && message['event'] === event) {
        this.#read++;
        return message;
      }
    }
    return undefined;
  }
}

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Netns, withNetns } from '../../netlink/netns.ts';
import { UdpSocket } from '../../test/support/udp-socket.ts';

/** What each packet of a flow contains. */
export const PAYLOAD: Uint8Array = Buffer.alloc(32, 0x55);
/** Beyond the 2 s after which the kernel calls an answered UDP flow a stream. @see net/netfilter/nf_conntrack_proto_udp.c */
const STREAM_AFTER_MS = 2_200;
/** Tries of the first exchange: neighbours may have to be found. */
const MOST_TRIES = 5;
const CONNTRACK = '/proc/thread-self/net/nf_conntrack';

/** Where a flow begins and ends, and the node between. */
export type FlowEnds = {
  readonly from: Netns;
  readonly to: Netns;
  /** Address in `to` that packets are sent to. */
  readonly ip: string;
  readonly port: number;
  /** Link of `to` that counts what arrives. */
  readonly ifname: string;
  /** Absent: nothing between tracks connections. */
  readonly tracker?: Netns;
  /** Whether the kernel of `to` sends each packet back, so that its socket gets none. */
  readonly isReflected?: true;
};

/** One UDP flow through a path, with both its sockets. */
export class Flow implements Disposable {
  readonly sender: UdpSocket;
  readonly receiver: UdpSocket;
  readonly #ends: FlowEnds;

  constructor(ends: FlowEnds) {
    this.#ends = ends;
    this.receiver = new UdpSocket(ends.to, { ip: '0.0.0.0', port: ends.port });
    this.sender = new UdpSocket(ends.from);
    this.sender.connect({ ip: ends.ip, port: ends.port });
    this.receiver.connect(this.sender.local);
  }

  /** Sends a packet and an answer. @throws Error when they do not arrive */
  exchange(): void {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      this.sender.send(PAYLOAD);
      if (this.#ends.isReflected !== true) {
        if (!this.receiver.receive()) continue;
        this.receiver.send(PAYLOAD);
      }
      if (this.sender.receive()) return;
    }
    throw new Error(`no answer from ${this.#name} within ${MOST_TRIES} packets`);
  }

  /** Packets that the link of the receiving end has counted. */
  arrived(): number {
    const { to, ifname } = this.#ends;
    const text = withNetns(to, () => readFileSync('/proc/thread-self/net/dev', 'utf8'));
    const line = text.split('\n').find((one) => one.trimStart().startsWith(`${ifname}:`));
    const packets = Number(
      line
        ?.slice(line.indexOf(':') + 1)
        .trim()
        .split(/\s+/)[1],
    );
    if (!Number.isInteger(packets)) throw new Error(`no counters of ${ifname}`);
    return packets;
  }

  /** Throws where connection tracking does not have the flow as assured: it is then not what a long-lived flow is. */
  assertAssured(): void {
    const { tracker } = this.#ends;
    if (tracker === undefined) return;
    const { port } = this.sender.local;
    const lines = withNetns(tracker, () => readFileSync(CONNTRACK, 'utf8')).split('\n');
    const own = lines.filter((line) => line.includes(`sport=${port} dport=${this.#ends.port}`));
    if (own.some((line) => line.includes('[ASSURED]'))) return;
    throw new Error(`${this.#name} is not assured: ${own.join('; ') || 'connection tracking does not have it'}`);
  }

  [Symbol.dispose](): void {
    this.sender[Symbol.dispose]();
    this.receiver[Symbol.dispose]();
  }

  get #name(): string {
    return `the UDP flow to ${this.#ends.ip} port ${this.#ends.port}`;
  }
}

/**
 * Makes flows what long-lived ones are. The kernel sets `assured` with the first packet that follows an answer by more than 2 s; a flow
 * without an answer stays `new` however long it lasts.
 */
export async function establishFlows(flows: readonly Flow[]): Promise<void> {
  for (const flow of flows) flow.exchange();
  await sleep(STREAM_AFTER_MS);
  for (const flow of flows) {
    flow.exchange();
    flow.assertAssured();
  }
}

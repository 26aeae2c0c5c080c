import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { applyOperations } from '../../../dataplane/apply.ts';
import type { HostState } from '../../../dataplane/desired.ts';
import { diffHost } from '../../../dataplane/diff.ts';
import { openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import type { Kernel } from '../../../dataplane/kernel.ts';
import { observeHost } from '../../../dataplane/observe.ts';
import { planNode } from '../../../dataplane/plan-node.ts';
import { wirePod } from '../../../dataplane/wire-pod.ts';
import { PacketSocket } from '../../support/packet-socket.ts';
import { readTcpFrame, TCP_FLAG, tcpFrame } from '../../support/tcp-segment.ts';
import { podOf, type TestNode, withTestNode } from './test-node.ts';

/** One of the two ends: a Pod, and a server behind its ENI. */
export type Side = 'client' | 'server';

/** Segments that an end sends, one after the other, and where they differ from what its TCP would send next. */
type Segments = {
  readonly by: Side;
  /** As letters: S, A, F, R, P. */
  readonly flags: string;
  readonly bytes?: number;
  /** Default 1. */
  readonly times?: number;
  /** Where the client sends it to; default the server. */
  readonly to?: string;
  /** Added to the sequence number of this segment alone. */
  readonly off?: number;
};

/** What the ends of a connection do. */
export type Step =
  | Segments
  /** Both ends are so many bytes further than anything saw; also where the client begins again by the same ports. */
  | { readonly ahead: number };

/** A connection, or several one after the other, by one port of the client. */
type Connection = {
  /** Returns a line of each step with segments: where they arrived. */
  send(steps: readonly Step[]): Promise<readonly string[]>;
  /** The states of its entries of connection tracking, as conntrack(8) names them. */
  states(): readonly string[];
};

/** A node between a Pod and a server. Nothing ends learned flows when rules change, as if the agent was killed. */
export type SegmentScene = {
  /** @param seen The client's port to the server, where rules rewrite it */
  connection(clientPort: number, seen?: number): Connection;
  /** Loads more rules, in the language of nft(8). */
  load(rules: string): void;
  /** An agent of this release takes over. */
  upgrade(): Promise<void>;
};

const ENDS = {
  4: { client: '10.0.5.20', server: '10.0.77.7' },
  6: { client: 'fd00:10:0:5::20', server: 'fd00:10:77::7' },
} as const;
const SERVER_PORT = 80;
const LETTERS: ReadonlyMap<string, number> = new Map([
  ...([
    ['S', TCP_FLAG.SYN],
    ['A', TCP_FLAG.ACK],
    ['F', TCP_FLAG.FIN],
    ['R', TCP_FLAG.RST],
    ['P', TCP_FLAG.PSH],
  ] as const),
]);

/** A segment that is not there after so long was dropped. */
const LONGEST_MS = 50;
/** No TCP of a kernel answers where this is loaded. */
const QUIET =
  'table inet quiet { chain quiet { type filter hook prerouting priority raw; policy accept; meta l4proto tcp drop; }; }';

/**
 * Runs with segments that are built by hand: no TCP of a kernel answers.
 * @param from `older`: the node is as a release without the chains `closing` and `leaving` had it, with programs of its own, until `upgrade`
 */
export async function withSegments<T>(
  fastPath: 'off' | 'bpf',
  family: 4 | 6,
  run: (scene: SegmentScene) => Promise<T>,
  from: 'older' | 'present' = 'present',
): Promise<T> {
  using flows = openFlowPrograms();
  using before = openFlowPrograms();
  const results: T[] = [];
  await withTestNode(async (node) => {
    const { plan, reach, close, connection } = openScene(node, fastPath, family);
    try {
      await (from === 'older' ? reach(withoutClosing(plan), before) : reach(plan, flows));
      results.push(
        await run({ connection, load: (rules) => void node.run('nft', rules), upgrade: () => reach(plan, flows) }),
      );
    } finally {
      close();
    }
  });
  const [result] = results;
  if (result === undefined) throw new Error('nothing was run');
  return result;
}

/** As a release before these chains had it. */
function withoutClosing(plan: HostState): HostState {
  if (plan.nft === undefined) return plan;
  return {
    ...plan,
    nft: { ...plan.nft, text: plan.nft.text.replace(/ chain (?:closing|leaving) \{\n[^}]* \}\n/g, '') },
  };
}

function openScene(node: TestNode, fastPath: 'off' | 'bpf', family: 4 | 6) {
  const [eth5] = node.enis;
  if (eth5 === undefined) throw new Error('a test node has two ENIs');
  const network = { ...node.network, ...(fastPath === 'bpf' && { fastPath }) };
  const pod = podOf(eth5, [ENDS[4].client, ENDS[6].client]);
  const space = node.createPodNetns();
  const wiring = { node: network, pod, fallbackName: pod.hostVeth.name };
  const { hostName: name, hostIfindex: ifindex } = wirePod(node.kernel, space.netns, wiring);
  const [far5] = node.far.ip.json('link', 'show', 'far5');
  const [eth0] = space.ip.json('link', 'show', 'eth0');
  const farMac = String(far5?.['address']);
  node.ip('link', 'set', 'eth5', 'up');
  for (const { gateway } of eth5.addresses) node.ip('neighbour', 'replace', gateway, 'lladdr', farMac, 'dev', 'eth5');
  for (const quiet of [space.name, node.far.name]) execFileSync('ip', ['netns', 'exec', quiet, '/usr/sbin/nft', QUIET]);
  const sockets = {
    client: new PacketSocket(space.netns, Number(eth0?.['ifindex'])),
    server: new PacketSocket(node.far.netns, Number(far5?.['ifindex'])),
  };
  const macs = {
    client: { srcMac: String(eth0?.['address']), dstMac: pod.hostVeth.mac },
    server: { srcMac: farMac, dstMac: eth5.mac },
  };
  return {
    plan: planNode(network, node.enis, [{ ...pod, hostVeth: { ...pod.hostVeth, name, ifindex } }]),
    reach: async (desired: HostState, flows: NonNullable<Kernel['flows']>): Promise<void> => {
      const kernel = { ...node.kernel, flows };
      await applyOperations(kernel, diffHost(desired, await observeHost(kernel, desired)).operations);
    },
    connection: (clientPort: number, seen = clientPort): Connection => {
      const sport = { client: clientPort, server: SERVER_PORT };
      const dport = { client: SERVER_PORT, server: seen };
      const next = { client: 1_000_000, server: 2_000_000 };
      const sendOne = async (
        { by, bytes = 0, off = 0, to: place }: Segments,
        flags: number,
      ): Promise<string | undefined> => {
        const to = by === 'client' ? 'server' : 'client';
        const seq = (next[by] + off) >>> 0;
        const ack = (flags & TCP_FLAG.ACK) === 0 ? 0 : next[to];
        const ends = { src: ENDS[family][by], dst: place ?? ENDS[family][to], sport: sport[by], dport: dport[by] };
        sockets[to].read();
        sockets[by].send(tcpFrame({ ...macs[by], ...ends, seq, ack, flags, bytes }));
        if (off === 0) next[by] += bytes + ((flags & (TCP_FLAG.SYN | TCP_FLAG.FIN)) === 0 ? 0 : 1);
        return await arrivalOf(sockets[to], seq, flags);
      };
      return {
        send: async (steps) => {
          const lines: string[] = [];
          for (const step of steps) {
            if ('by' in step) lines.push(await lineOf(step, sendOne));
            else {
              next.client += step.ahead;
              next.server += step.ahead;
            }
          }
          return lines;
        },
        states: () =>
          node
            .run('conntrack', '-L', '-p', 'tcp', '-f', `ipv${family}`, '--orig-port-src', `${clientPort}`)
            .split('\n')
            .flatMap((line) => / 6 \d+ (\w+) /.exec(line)?.[1] ?? []),
      };
    },
    close: (): void => {
      for (const socket of Object.values(sockets)) socket[Symbol.dispose]();
    },
  };
}

async function lineOf(
  step: Segments,
  sendOne: (step: Segments, flags: number) => Promise<string | undefined>,
): Promise<string> {
  const { by, flags, bytes = 0, times = 1, to } = step;
  const bits = [...flags].reduce((sum, letter) => sum | (LETTERS.get(letter) ?? 0), 0);
  const arrivals: string[] = [];
  for (let nth = 0; nth < times; nth++) arrivals.push((await sendOne(step, bits)) ?? 'nowhere');
  const places = [...new Set(arrivals)].map((place) => `${arrivals.filter((each) => each === place).length} ${place}`);
  return `${by} ${flags}${bytes === 0 ? '' : ` ${bytes} bytes`}${to === undefined ? '' : ` to ${to}`}: ${places.join(', ')}`;
}

/** Where a segment arrived: its destination; undefined when it was dropped. */
async function arrivalOf(at: PacketSocket, seq: number, flags: number): Promise<string | undefined> {
  const startMs = performance.now();
  do {
    for (const frame of at.read()) {
      const found = readTcpFrame(frame);
      if (found?.seq === seq && found.flags === flags) return found.dst;
    }
    await sleep(1);
  } while (performance.now() - startMs < LONGEST_MS);
  return undefined;
}

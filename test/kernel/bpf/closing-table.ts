import { PacketSocket } from '../../support/packet-socket.ts';
import { hasRightChecksums, readTcpFrame, TCP_FLAG, type TcpSegment, tcpFrame } from '../../support/tcp-segment.ts';
import { NEXT, type ProgramBench, TC_ACT_REDIRECT, TC_ACT_UNSPEC } from './program-bench.ts';

const { FIN, SYN, RST, ACK } = TCP_FLAG;
const ENDS = { 4: ['10.0.5.9', '203.0.113.10'], 6: ['2001:db8::9', '2001:db8:ff::10'] } as const;
/** What the flow sent up to now, and what the other direction acknowledged of it. */
const END = 1_132;
const ACKNOWLEDGED = 1_000;
/** A mark that other programs gave the packet. */
const MARK = 0x4000;

type Change = Partial<Pick<TcpSegment, 'seq' | 'ack' | 'flags' | 'bytes' | 'words'>>;

/** How the flows differ: none back; another outgoing link. */
type Links = { readonly back?: false; readonly oif?: number };

/** A connection with a flow each way: `there` by the link `iif`, `back` by the other one. */
class LearnedConnection {
  readonly #bench: ProgramBench;
  readonly #family: 4 | 6;

  constructor(bench: ProgramBench, family: 4 | 6, links: Links = {}) {
    this.#bench = bench;
    this.#family = family;
    bench.programs.forgetFlows();
    for (const [flow, link] of [
      ['there', 'iif'],
      ['back', 'oif'],
    ] as const) {
      // A flow of the bench before is not to be met.
      const syn = this.#frame(flow, { flags: SYN }, bench.macOf(link));
      for (let times = 0; times < 2; times++) bench.arriveFrame(link, syn);
    }
    const first = { seq: ACKNOWLEDGED, bytes: 32 };
    bench.learnFrame(
      'iif',
      this.#frame('there', first, NEXT.to),
      links.oif === undefined ? {} : { ifindex: links.oif },
    );
    if (links.back !== false) bench.learnFrame('oif', this.#frame('back', { seq: 1, ack: ACKNOWLEDGED }, NEXT.to));
    // Padded by the network card, and with options.
    const last = { seq: 1_032, bytes: 100, words: 8 };
    bench.arriveFrame('iif', Buffer.concat([this.#frame('there', last, bench.macOf('iif')), Buffer.alloc(6)]));
  }

  /** Sends a packet of the flow, and returns what became of it and what was received once more in front of it. */
  arrive(flow: 'there' | 'back', change: Change) {
    const link = flow === 'there' ? 'iif' : 'oif';
    const sent = this.#frame(flow, change, this.#bench.macOf(link));
    using seen = new PacketSocket(this.#bench.host.netns, this.#bench[link]);
    const { action, packet, mark } = this.#bench.arriveFrame(link, sent, { mark: MARK });
    const copies = seen.read().filter((frame) => readTcpFrame(frame) !== undefined);
    return { action, mark, isSame: packet.equals(sent), sent, copies };
  }

  isFollowed(flow: 'there' | 'back'): boolean {
    return this.arrive(flow, { seq: 5_000, ack: 5_000 }).action === TC_ACT_REDIRECT;
  }

  #frame(flow: 'there' | 'back', change: Change, dstMac: string): Buffer {
    const [near, far] = ENDS[this.#family];
    const [src, dst, sport, dport] = flow === 'there' ? [near, far, 1_000, 80] : [far, near, 80, 1_000];
    const plain = { srcMac: NEXT.from, dstMac, seq: 1, ack: 1, flags: ACK, bytes: 0 };
    return tcpFrame({ ...plain, src, dst, sport, dport, ...change });
  }
}

/** Runs packets that end connections against the programs of a bench, and returns what was wrong, a line each. */
export function closingFaults(bench: ProgramBench): readonly string[] {
  return ([4, 6] as const).flatMap((family) =>
    [...plainEnds(bench, family), ...resets(bench, family), ...otherNumbers(bench, family)].map(
      (fault) => `IPv${family}: ${fault}`,
    ),
  );
}

/** FIN and SYN take the kernel's way, and end both flows. */
function plainEnds(bench: ProgramBench, family: 4 | 6): readonly string[] {
  const flags = { FIN: FIN | ACK, SYN, 'SYN and ACK': SYN | ACK, 'SYN and RST': SYN | RST, 'FIN and RST': FIN | RST };
  return Object.entries(flags).flatMap(([what, bits]) =>
    (['there', 'back'] as const).flatMap((flow) => {
      const connection = new LearnedConnection(bench, family);
      const learned = connection.isFollowed('there') && connection.isFollowed('back');
      const { action, isSame, mark, copies } = connection.arrive(flow, { flags: bits, seq: END });
      return faults(`${what} ${flow}`, {
        learned,
        'left to the kernel': action === TC_ACT_UNSPEC && isSame && mark === MARK && copies.length === 0,
        'ends both flows': !connection.isFollowed('there') && !connection.isFollowed('back'),
      });
    }),
  );
}

/** A RST with a number that was seen: a copy with FIN goes in front, then the RST, then the SYN after it. */
function resets(bench: ProgramBench, family: 4 | 6): readonly string[] {
  const cases: readonly (readonly [string, Links, number])[] = [
    ['behind the last byte', {}, END],
    ['behind the last byte, without the other flow', { back: false }, END],
    ['behind the last byte, by a link of the same number in 24 bits', { oif: bench.twinOfOif }, END],
    ['as acknowledged', {}, ACKNOWLEDGED],
  ];
  return cases.flatMap(([what, links, seq]) => {
    const connection = new LearnedConnection(bench, family, links);
    const reset = connection.arrive('there', { flags: RST | ACK, seq, ack: 77 });
    const [copy, ...more] = reset.copies;
    const again = connection.arrive('there', { flags: RST | ACK, seq });
    const fin = connection.arrive('there', { flags: FIN | ACK, seq });
    const syn = connection.arrive('there', { flags: SYN, seq: 9_000 });
    const next = connection.arrive('there', { flags: SYN, seq: 9_000 });
    return faults(`RST ${what}`, {
      'received once more': reset.action === TC_ACT_REDIRECT && reset.isSame && reset.mark === MARK,
      'behind one copy': more.length === 0 && isCopyOf(copy, reset.sent, family),
      'once only': again.action === TC_ACT_UNSPEC && fin.action === TC_ACT_UNSPEC && again.copies.length === 0,
      'ends both flows': !connection.isFollowed('there') && !(links.oif === undefined && connection.isFollowed('back')),
      'not overtaken by a SYN': syn.action === TC_ACT_REDIRECT && syn.isSame && next.action === TC_ACT_UNSPEC,
    });
  });
}

/** A RST with any other number goes on, and so does the flow. */
function otherNumbers(bench: ProgramBench, family: 4 | 6): readonly string[] {
  const cases: readonly (readonly [string, Links, number])[] = [
    ['after the last byte', {}, END + 1],
    ['before the last byte', {}, END - 1],
    ['after what is acknowledged', {}, ACKNOWLEDGED + 1],
    ['as acknowledged, without the other flow', { back: false }, ACKNOWLEDGED],
    ['as acknowledged, by a link of the same number in 24 bits', { oif: bench.twinOfOif }, ACKNOWLEDGED],
  ];
  return cases.flatMap(([what, links, seq]) => {
    const connection = new LearnedConnection(bench, family, links);
    const { action, isSame, copies } = connection.arrive('there', { flags: RST, seq });
    return faults(`RST ${what}`, {
      'left to the kernel': action === TC_ACT_UNSPEC && isSame && copies.length === 0,
      'ends nothing': connection.isFollowed('there') && connection.isFollowed('back') === (links.back !== false),
    });
  });
}

/** It has no hop left and FIN in the place of RST; all else is the same. */
function isCopyOf(copy: Buffer | undefined, reset: Buffer, family: 4 | 6): boolean {
  if (copy?.length !== reset.length) return false;
  const [hops, flags, sums] = family === 4 ? [22, 47, [24, 50]] : [21, 67, [70]];
  const wanted = Buffer.from(reset);
  wanted[hops] = 0;
  wanted[flags] = FIN | ACK;
  for (const at of sums) wanted.writeUInt16BE(copy.readUInt16BE(at), at);
  return copy.equals(wanted) && hasRightChecksums(copy);
}

function faults(what: string, checks: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.entries(checks).flatMap(([check, isTrue]) => (isTrue ? [] : [`${what}: not ${check}`]));
}

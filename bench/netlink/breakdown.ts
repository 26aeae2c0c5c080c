import { ByteWriter } from '../../netlink/byte-writer.ts';
import { encodeRequest } from '../../netlink/encode-request.ts';
import { openNetns, withNetns } from '../../netlink/netns.ts';
import { openSocket } from '../../netlink/open-socket.ts';
import type { Request } from '../../netlink/request.ts';
import { createRtnetlink, type Rtnetlink } from '../../netlink/rtnetlink.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/netlink.ts';
import { median } from '../row.ts';
import { type Bed, timed } from './bed.ts';
import { TABLE } from './contestants.ts';

/** Where the time of one added route goes, microseconds. */
type Breakdown = {
  readonly encode: number;
  readonly systemCalls: number;
  /** Reading the answer, and all else. */
  readonly decode: number;
};

const ROUNDS = 9;
const WRITER_BYTES = 4096;

/** Measures where the time of adding routes goes, one by one and in batches; medians of rounds in turn. */
export function breakDown(bed: Bed): { readonly single: Breakdown; readonly batch: Breakdown } {
  const requests = bed.dsts.map(
    (dst): Request => ({ object: 'route', verb: 'add', spec: { dst, oif: bed.oif, table: TABLE } }),
  );
  using socket = openTimedRtnetlink(bed);
  const { rtnetlink } = socket;
  const singles = () => {
    for (const request of requests) if (request.object === 'route') rtnetlink.route.add(request.spec);
  };
  const batches = () => {
    for (const outcome of rtnetlink.execute(requests)) if (outcome.kind === 'error') throw outcome.error;
  };
  const writer = new ByteWriter(WRITER_BYTES);
  const encoded: number[] = [];
  const rounds = { single: [] as Breakdown[], batch: [] as Breakdown[] };
  for (let round = 0; round < ROUNDS; round++) {
    encoded.push(timed(() => encodeAll(writer, requests)));
    for (const [name, add] of [
      ['single', singles],
      ['batch', batches],
    ] as const) {
      const encode = encoded.at(-1) ?? Number.NaN;
      const before = socket.inKernelMs();
      const total = timed(add);
      const systemCalls = socket.inKernelMs() - before;
      rounds[name].push({ encode, systemCalls, decode: total - systemCalls - encode });
      bed.ip('route', 'flush', 'table', String(TABLE));
    }
  }
  const of = (all: readonly Breakdown[]): Breakdown => {
    const perRoute = (part: (one: Breakdown) => number) => (median(all.map(part)) * 1000) / requests.length;
    return {
      encode: perRoute(({ encode }) => encode),
      systemCalls: perRoute(({ systemCalls }) => systemCalls),
      decode: perRoute(({ decode }) => decode),
    };
  };
  return { single: of(rounds.single), batch: of(rounds.batch) };
}

/** Renders a breakdown: `encode 0.4, system calls 4.1, decode and the rest 0.5 µs`. */
export function renderBreakdown({ encode, systemCalls, decode }: Breakdown): string {
  return `encode ${encode.toFixed(2)}, system calls ${systemCalls.toFixed(2)}, decode and the rest ${decode.toFixed(2)} µs`;
}

function encodeAll(writer: ByteWriter, requests: readonly Request[]): void {
  for (const request of requests) {
    writer.reset();
    encodeRequest(writer, request, 1, 0);
  }
}

type TimedRtnetlink = Disposable & {
  readonly rtnetlink: Rtnetlink;
  /** Milliseconds in reads and writes so far. */
  inKernelMs(): number;
};

/** Opens a connection that counts the time of its reads and writes. */
function openTimedRtnetlink({ netns }: Bed): TimedRtnetlink {
  using handle = openNetns(`/run/netns/${netns}`);
  const socket = withNetns(handle, () => openSocket({ protocol: NETLINK_ROUTE }));
  let spentMs = 0;
  const counted = <T>(run: () => T): T => {
    const startMs = performance.now();
    const result = run();
    spentMs += performance.now() - startMs;
    return result;
  };
  const rtnetlink = createRtnetlink({
    ...socket,
    write: (bytes, length) => counted(() => socket.write(bytes, length)),
    read: (buffer) => counted(() => socket.read(buffer)),
  });
  return { rtnetlink, inKernelMs: () => spentMs, [Symbol.dispose]: () => rtnetlink.close() };
}

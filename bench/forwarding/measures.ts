import { median } from '../row.ts';
import { type Flow, PAYLOAD } from './flow.ts';
import { PacketBatch } from './packet-batch.ts';
import type { Path } from './path.ts';

/** Packets of one sendmmsg(2). */
const BATCH = 64;
/** Batches between two looks at the clock: a millisecond, less than the scheduler gives to other processes at once. */
const BATCHES = 4;
/** Round trips between two looks at the clock, which may take a twentieth of one. */
const TRIPS = 8;

/** Measures one path for about `ms`: packets per second that arrived, or the median round trip in microseconds. */
export type Measure = (path: Path, ms: number) => number;

const batch = new PacketBatch(PAYLOAD, BATCH);

/** Pod to far end, one write(2) a packet, as an application sends: the way through the node is about half of it. */
export const egress: Measure = ({ flows }, ms) => rateOf(flows.egress, ms, sendOneByOne);
/** Pod to far end, 64 packets a sendmmsg(2): the way through the node is most of it. */
export const egressBatched: Measure = ({ flows }, ms) => rateOf(flows.egress, ms, sendBatch);
/** Far end to Pod, 64 packets a sendmmsg(2), in a flow that the far end began. */
export const ingress: Measure = ({ flows }, ms) => rateOf(flows.ingress, ms, sendBatch);

/** A packet of the Pod and its answer, which the far end's kernel gives, one after the other. */
export const roundTrip: Measure = ({ flows: { roundTrip: flow } }, ms) => {
  const times: number[] = [];
  const start = performance.now();
  for (let before = start; before - start < ms; ) {
    for (let trip = 0; trip < TRIPS; trip++) {
      flow.sender.send(PAYLOAD);
      if (!flow.sender.receive()) throw new Error('a packet of a ping-pong was lost');
    }
    const after = performance.now();
    times.push((after - before) / TRIPS);
    before = after;
  }
  return median(times) * 1_000;
};

function sendBatch({ sender }: Flow): void {
  batch.send(sender.fd);
}

function sendOneByOne({ sender }: Flow): void {
  for (let packet = 0; packet < BATCH; packet++) sender.send(PAYLOAD);
}

/** Takes the median of many short strides: what other processes interrupt does not count. */
function rateOf(flow: Flow, ms: number, send: (flow: Flow) => void): number {
  const rates: number[] = [];
  const end = performance.now() + ms;
  let before = flow.arrived();
  do {
    const start = performance.now();
    for (let sent = 0; sent < BATCHES; sent++) send(flow);
    const seconds = (performance.now() - start) / 1_000;
    const after = flow.arrived();
    rates.push((after - before) / seconds);
    before = after;
  } while (performance.now() < end);
  return median(rates);
}

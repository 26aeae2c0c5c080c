import { readFileSync } from 'node:fs';
import { assemble, type SourceLine } from '../../../bpf/assemble.ts';
import { BpfMap, type MapShape, openMap } from '../../../bpf/bpf-map.ts';
import { type BpfProgram, loadProgram, openProgram } from '../../../bpf/bpf-program.ts';
import {
  ARRIVALS,
  ARRIVALS_VALUE,
  EPOCH,
  FLOW_KEY,
  FLOW_VALUE,
  FLOWS_4,
  FLOWS_6,
} from '../../../dataplane/fast-path/flow-layout.ts';
import { type FlowPrograms, openFlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { FAST_PATH_MARK } from '../../../dataplane/numbers.ts';
import { withNetns } from '../../../netlink/netns.ts';
import { TestNetns } from '../netlink/support/test-netns.ts';
import { type FrameSpec, frame } from './frame.ts';
import { type RunResult, runProgram, type TestSkb } from './run-program.ts';

export const TC_ACT_UNSPEC = -1;
export const TC_ACT_REDIRECT = 7;
/** The MAC of the gateway, and that of the ENI: what the kernel wrote into the packet that is learned from. */
export const NEXT = { to: '02:00:00:00:00:aa', from: '02:00:00:00:00:bb' };
export const V4: FrameSpec = { src: '10.0.5.9', dst: '203.0.113.10' };
export const V6: FrameSpec = { src: '2001:db8::9', dst: '2001:db8:ff::10' };

/** As `0-3`: the kernel has a value for each. */
const POSSIBLE_CPUS = Number(readFileSync('/sys/devices/system/cpu/possible', 'utf8').trim().split('-').at(-1)) + 1;
const { slots, slotShift, slotCount, tag } = ARRIVALS_VALUE;
const SHAPES = [FLOWS_4, FLOWS_6, EPOCH, ARRIVALS];

/** A packet as it came in, which leaves as another one; `number` is that of its arrival. */
type Arrival = { readonly packet: Buffer; readonly number?: number };

/** The two programs and two links of a namespace: packets come in by `iif` and leave by `oif`. */
export class ProgramBench implements Disposable {
  readonly host = new TestNetns();
  readonly programs: FlowPrograms = openFlowPrograms();
  readonly iif: number = this.host.addVethPair();
  readonly oif: number = this.host.rtnl.link.get({ ifname: 'v1' })?.ifindex ?? 0;
  readonly #maps: readonly BpfMap[] = SHAPES.map((shape) => this.#open(shape));
  readonly #everyCpu = new BpfMap(this.map(ARRIVALS).fd, {
    ...ARRIVALS,
    valueBytes: ARRIVALS.valueBytes * POSSIBLE_CPUS,
  });
  #instead: { readonly which: 'fast' | 'learn'; readonly program: BpfProgram } | undefined;
  readonly #mac = this.host.rtnl.link.get({ ifindex: this.iif })?.address ?? '';

  /** A link with the lower 24 bits of the number of `iif`, and its address: the key of a flow has no more of the number. */
  readonly twin: number = this.#addTwin('twin', this.iif);
  /** The same of `oif`. */
  readonly twinOfOif: number = this.#addTwin('other', this.oif);

  /** As the kernel sends it on, with the mark of our chain. */
  learn(spec: FrameSpec, skb: TestSkb = {}, arrival?: Arrival): RunResult {
    return this.learnFrame('iif', frame({ ...NEXT, ...spec }), skb, arrival);
  }

  /** A frame as the kernel sends it on, from one of the two links to the other. */
  learnFrame(from: 'iif' | 'oif', packet: Buffer, skb: TestSkb = {}, arrival: Arrival = { packet }): RunResult {
    const [ingressIfindex, ifindex] = from === 'iif' ? [this.iif, this.oif] : [this.oif, this.iif];
    const sent = { mark: FAST_PATH_MARK, ingressIfindex, ifindex, ...skb };
    this.#arrived(arrival, sent.ingressIfindex);
    return this.#run(this.#fdOf('learn'), packet, sent);
  }

  /** How many packets a CPU has noted that came in, of both; and whether it noted this one last. */
  noted(packet: Buffer): { readonly numbers: number; readonly isLast: boolean } {
    const places = this.#placesOfCpus();
    const wanted = placeOf(packet, this.iif);
    const numbers = places.map((one) => one.readUInt32LE(0));
    const isLast = places.some((one, cpu) => {
      const number = numbers[cpu] ?? 0;
      const at = slots + ((number & (slotCount - 1)) << slotShift);
      const bytes = wanted.key.byteLength;
      return (
        one.subarray(at, at + bytes).equals(wanted.key) &&
        one.readUInt32LE(at + tag) === ((wanted.family << 16) | number) >>> 0
      );
    });
    return { numbers: numbers.reduce((sum, each) => sum + each, 0), isLast };
  }

  /** A test run gives a packet the number 0. */
  #arrived({ packet, number = 0 }: Arrival, iif: number): void {
    const { key, family } = placeOf(packet, iif);
    const places = this.#placesOfCpus();
    for (const one of places) {
      one.set(key, slots);
      one.writeUInt32LE(((family << 16) | number) >>> 0, slots + tag);
    }
    this.map(ARRIVALS).update(new Uint8Array(4), Buffer.concat(places));
  }

  #placesOfCpus(): readonly Buffer[] {
    const bytes = Buffer.from(this.#everyCpu.lookup(new Uint8Array(4)) ?? []);
    return Array.from({ length: POSSIBLE_CPUS }, (_, cpu) =>
      Buffer.from(bytes.subarray(cpu * ARRIVALS.valueBytes, (cpu + 1) * ARRIVALS.valueBytes)),
    );
  }

  /** A frame as it comes in by one of the two links. */
  arriveFrame(by: 'iif' | 'oif', packet: Buffer, skb: TestSkb = {}): RunResult {
    return this.#run(this.#fdOf('fast'), packet, { ifindex: this[by], ...skb });
  }

  /** The address of a link. */
  macOf(link: 'iif' | 'oif'): string {
    return this.host.rtnl.link.get({ ifindex: this[link] })?.address ?? '';
  }

  /** As it comes in, to the address of the link. */
  arrive(spec: FrameSpec, skb: TestSkb = {}): RunResult {
    return this.#run(this.#fdOf('fast'), frame({ to: this.#mac, ...spec }), { ifindex: this.iif, ...skb });
  }

  /** The map of this shape; the bench closes it. */
  map({ name }: MapShape): BpfMap {
    const map = this.#maps[SHAPES.findIndex((shape) => shape.name === name)];
    if (map === undefined) throw new Error(`the programs have no map ${name}`);
    return map;
  }

  /** Ends the time of all flows, as a second does. */
  age(): void {
    for (const map of [this.map(FLOWS_4), this.map(FLOWS_6)]) {
      for (const { key, value } of map.entries()) {
        value.fill(0, FLOW_VALUE.expiry, FLOW_VALUE.expiry + 8);
        map.update(key, value);
      }
    }
  }

  /** Runs `run` with another program in the place of one of the two, which has the same maps. @throws BpfError of the verifier */
  withProgram(which: 'fast' | 'learn', source: readonly SourceLine[], run: () => void): void {
    const fdOf = (shape: MapShape): number => this.map(shape).fd;
    const maps = { flows4: fdOf(FLOWS_4), flows6: fdOf(FLOWS_6), epoch: fdOf(EPOCH), arrivals: fdOf(ARRIVALS) };
    using program = loadProgram('changed', assemble(source, maps), 'Dual MIT/GPL');
    this.#instead = { which, program };
    try {
      run();
    } finally {
      this.#instead = undefined;
    }
  }

  #addTwin(name: string, of: number): number {
    const ifindex = of + 0x1000000;
    this.host.ip(`link add name ${name} address ${this.#mac} index ${ifindex} type veth peer name ${name}1`);
    return ifindex;
  }

  #fdOf(which: 'fast' | 'learn'): number {
    return this.#instead?.which === which ? this.#instead.program.fd : this.programs[which].fd;
  }

  #open(shape: MapShape): BpfMap {
    using program = openProgram(this.programs.learn.id);
    for (const id of program.info.mapIds) {
      const map = openMap(id, shape);
      if (map !== undefined) return map;
    }
    throw new Error(`the program ${this.programs.learn.id} has no map ${shape.name}`);
  }

  #run(fd: number, packet: Buffer, skb: TestSkb): RunResult {
    return withNetns(this.host.netns, () => runProgram(fd, packet, skb));
  }

  [Symbol.dispose](): void {
    for (const map of this.#maps) map[Symbol.dispose]();
    this.programs.close();
    this.host[Symbol.dispose]();
  }
}

/** The key of a packet, as the programs have it. */
function placeOf(packet: Buffer, iif: number): { readonly key: Buffer; readonly family: 4 | 6 } {
  const isIpv6 = packet.readUInt16BE(12) === 0x86dd;
  const [at, family] = isIpv6 ? ([FLOW_KEY[6], 6] as const) : ([FLOW_KEY[4], 4] as const);
  const [addresses, protocol] = isIpv6 ? [22, packet[20]] : [26, packet[23]];
  const key = Buffer.alloc(at.bytes);
  packet.copy(key, 0, addresses, addresses + 2 * at.addressBytes + 4);
  key.writeUInt32LE(((iif << 8) | (protocol ?? 0)) >>> 0, at.iifProto);
  return { key, family };
}

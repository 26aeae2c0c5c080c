import { assemble, type SourceLine } from '../../../bpf/assemble.ts';
import { type BpfMap, type MapShape, openMap } from '../../../bpf/bpf-map.ts';
import { type BpfProgram, loadProgram, openProgram } from '../../../bpf/bpf-program.ts';
import { EPOCH, FLOW_VALUE, FLOWS_4, FLOWS_6 } from '../../../dataplane/fast-path/flow-layout.ts';
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

/** The two programs and two links of a namespace: packets come in by `iif` and leave by `oif`. */
export class ProgramBench implements Disposable {
  readonly host = new TestNetns();
  readonly programs: FlowPrograms = openFlowPrograms();
  readonly iif: number = this.host.addVethPair();
  readonly oif: number = this.host.rtnl.link.get({ ifname: 'v1' })?.ifindex ?? 0;
  readonly #maps: readonly BpfMap[] = [FLOWS_4, FLOWS_6, EPOCH].map((shape) => this.#open(shape));
  #instead: { readonly which: 'fast' | 'learn'; readonly program: BpfProgram } | undefined;
  readonly #mac = this.host.rtnl.link.get({ ifindex: this.iif })?.address ?? '';

  /** A link with the lower 24 bits of the number of `iif`, and its address: the key of a flow has no more of the number. */
  readonly twin: number = this.#addTwin('twin', this.iif);
  /** The same of `oif`. */
  readonly twinOfOif: number = this.#addTwin('other', this.oif);

  /** As the kernel sends it on, with the mark of our chain. */
  learn(spec: FrameSpec, skb: TestSkb = {}): RunResult {
    const sent = { mark: FAST_PATH_MARK, ingressIfindex: this.iif, ifindex: this.oif, ...skb };
    return this.#run(this.#fdOf('learn'), frame({ ...NEXT, ...spec }), sent);
  }

  /** A frame as the kernel sends it on, from one of the two links to the other. */
  learnFrame(from: 'iif' | 'oif', packet: Buffer, skb: TestSkb = {}): RunResult {
    const [ingressIfindex, ifindex] = from === 'iif' ? [this.iif, this.oif] : [this.oif, this.iif];
    return this.#run(this.#fdOf('learn'), packet, { mark: FAST_PATH_MARK, ingressIfindex, ifindex, ...skb });
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
    const map = this.#maps[[FLOWS_4, FLOWS_6, EPOCH].findIndex((shape) => shape.name === name)];
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
    const [flows4, flows6, epoch] = [FLOWS_4, FLOWS_6, EPOCH].map((shape) => this.map(shape).fd);
    const maps = { flows4: flows4 ?? -1, flows6: flows6 ?? -1, epoch: epoch ?? -1 };
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

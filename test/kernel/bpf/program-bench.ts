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
  readonly #mac = this.host.rtnl.link.get({ ifindex: this.iif })?.address ?? '';

  /** As the kernel sends it on, with the mark of our chain. */
  learn(spec: FrameSpec, skb: TestSkb = {}): RunResult {
    const sent = { mark: FAST_PATH_MARK, ingressIfindex: this.iif, ifindex: this.oif, ...skb };
    return this.#run(this.programs.learn.fd, frame({ ...NEXT, ...spec }), sent);
  }

  /** As it comes in, to the address of the link. */
  arrive(spec: FrameSpec, skb: TestSkb = {}): RunResult {
    return this.#run(this.programs.fast.fd, frame({ to: this.#mac, ...spec }), { ifindex: this.iif, ...skb });
  }

  #run(fd: number, packet: Buffer, skb: TestSkb): RunResult {
    return withNetns(this.host.netns, () => runProgram(fd, packet, skb));
  }

  [Symbol.dispose](): void {
    this.programs.close();
    this.host[Symbol.dispose]();
  }
}

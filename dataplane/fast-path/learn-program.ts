import type { SourceLine } from '../../bpf/assemble.ts';
import { alu, call, exit, jump, jumpIf, label, load, loadMap, loadValueOf, move, store } from '../../bpf/source.ts';
import { TC_ACT_UNSPEC } from '../../bpf/uapi/bpf.ts';
import { IPPROTO_UDP } from '../../netlink/uapi/in.ts';
import { FAST_PATH_MARK } from '../numbers.ts';
import { isAsArrived } from './arrival-source.ts';
import { rememberNumbers } from './closing-source.ts';
import { FLOW_KEY, FLOW_TTL_NS, FLOW_VALUE } from './flow-layout.ts';
import { closes, IPV4, IPV6, readDscp, readPacket, SKB } from './flow-source.ts';

/** The value on the stack, below the longer one of the two keys; below it, what check_mtu answers. */
const VALUE = -(FLOW_KEY[6].bytes + FLOW_VALUE.bytes);
const MTU_ANSWER = VALUE - 8;

/**
 * The program at the egress of ENIs and Pods' links: from a packet that the kernel forwarded and that has the mark of our
 * forward chain, it learns where the next ones of its flow may go. It lets every packet through. `r6`: argument, `r7`: the
 * map, `r8`: frame, `r9`: key.
 */
export const LEARN_PROGRAM: readonly SourceLine[] = [
  // First, because most packets have no mark: those of learned flows, and what the node itself sends.
  load(32, 'r2', 'r1', SKB.mark),
  jumpIf('r2', 'set', FAST_PATH_MARK, 'marked'),
  move('r0', TC_ACT_UNSPEC),
  exit(),
  label('marked'),
  load(32, 'r2', 'r1', SKB.ingressIfindex),
  jumpIf('r2', '==', 0, 'out'),
  ...readPacket(SKB.ingressIfindex, false),
  label('found4'),
  move('r9', 'r2'),
  ...isAsArrived('v4', MTU_ANSWER),
  ...readNumbers('v4'),
  ...readDscp('v4'),
  loadMap('r7', 'flows4'),
  jump('learn'),
  label('found6'),
  move('r9', 'r2'),
  ...isAsArrived('v6', MTU_ANSWER),
  ...readNumbers('v6'),
  ...readDscp('v6'),
  loadMap('r7', 'flows6'),
  label('learn'),
  store(32, 'r10', VALUE + FLOW_VALUE.dscp, 'r1'),
  load(64, 'r1', 'r8', 0),
  store(64, 'r10', VALUE + FLOW_VALUE.macs, 'r1'),
  load(32, 'r1', 'r8', 8),
  store(32, 'r10', VALUE + FLOW_VALUE.macs + 8, 'r1'),
  load(32, 'r1', 'r6', SKB.priority),
  store(32, 'r10', VALUE + FLOW_VALUE.priority, 'r1'),
  load(32, 'r1', 'r6', SKB.ifindex),
  store(32, 'r10', VALUE + FLOW_VALUE.oif, 'r1'),
  // Before the clock and the MTU: what changes after this line ends the flow.
  loadValueOf('r1', 'epoch'),
  load(32, 'r1', 'r1', 0),
  store(32, 'r10', VALUE + FLOW_VALUE.epoch, 'r1'),
  // check_mtu(skb, this interface, &mtu, 0, 0) answers with the MTU.
  store(64, 'r10', MTU_ANSWER, 0),
  move('r1', 'r6'),
  move('r2', 0),
  move('r3', 'r10'),
  alu('add', 'r3', MTU_ANSWER),
  move('r4', 0),
  move('r5', 0),
  call('check_mtu'),
  load(32, 'r1', 'r10', MTU_ANSWER),
  jumpIf('r1', '==', 0, 'out'),
  store(32, 'r10', VALUE + FLOW_VALUE.mtu, 'r1'),
  call('ktime_get_coarse_ns'),
  alu('add', 'r0', FLOW_TTL_NS),
  store(64, 'r10', VALUE + FLOW_VALUE.expiry, 'r0'),
  move('r1', 'r7'),
  move('r2', 'r9'),
  move('r3', 'r10'),
  alu('add', 'r3', VALUE),
  move('r4', 0),
  call('map_update_elem'),
  label('out'),
  move('r0', TC_ACT_UNSPEC),
  exit(),
];

/** Lines that write the numbers of a TCP packet into the value; nothing is learned from one that closes. */
function readNumbers(version: 'v4' | 'v6'): readonly SourceLine[] {
  const protocol = version === 'v4' ? IPV4.protocol : IPV6.nextHeader;
  return [
    store(64, 'r10', VALUE + FLOW_VALUE.end, 0),
    load(8, 'r1', 'r8', protocol),
    jumpIf('r1', '==', IPPROTO_UDP, `${version}-known`),
    ...closes(version, 'out'),
    ...rememberNumbers(version, 'r10', VALUE),
    label(`${version}-known`),
  ];
}

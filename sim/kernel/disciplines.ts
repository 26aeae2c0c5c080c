import type { QdiscMessage } from '../../netlink/qdisc-message.ts';
import { type QdiscSpec, qdiscMessageOf } from '../../netlink/qdisc-request.ts';
import { emit, linksOf, type Netns } from './netns.ts';
import { Refusal } from './refusal.ts';

/** Makes the place of a link's traffic filters. @throws Refusal ENODEV, EEXIST */
export function addQdisc(netns: Netns, spec: QdiscSpec, by: number): void {
  const link = netns.links.get(spec.ifindex);
  if (link === undefined) throw new Refusal('ENODEV', 'Cannot find device');
  if (link.qdiscs.some(({ kind }) => kind === spec.kind))
    throw new Refusal('EEXIST', 'Exclusivity flag on, cannot modify');
  const message: QdiscMessage = {
    ...{ ifindex: link.ifindex, handle: 0, parent: 0, info: 1, kind: spec.kind, unknown: [] },
    ...qdiscMessageOf(spec),
  };
  link.qdiscs.push(message);
  emit(netns, { kind: 'qdisc', op: 'new', message, portid: by });
}

/** Removes the place of a link's traffic filters. @throws Refusal ENODEV, ENOENT, EINVAL */
export function deleteQdisc(netns: Netns, spec: QdiscSpec, by: number): void {
  const link = netns.links.get(spec.ifindex);
  if (link === undefined) throw new Refusal('ENODEV', 'Cannot find device');
  const at = link.qdiscs.findIndex(({ kind }) => kind === spec.kind);
  const [message] = at < 0 ? [] : link.qdiscs.splice(at, 1);
  if (message === undefined) throw new Refusal('EINVAL', 'Cannot find specified qdisc on specified device');
  emit(netns, { kind: 'qdisc', op: 'del', message, portid: by });
}

/** Lists the disciplines that requests made. */
export function qdiscsOf(netns: Netns): readonly QdiscMessage[] {
  return linksOf(netns).flatMap(({ qdiscs }) => qdiscs);
}

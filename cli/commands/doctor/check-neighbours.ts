import { familyOf } from '../../../dataplane/ip-prefix.ts';
import { type Finding, uniqueFindings } from '../../../inspection/catalogue/finding.ts';
import { findStaticNeighbour } from '../../../inspection/faults/find-neighbour-fault.ts';
import { findInsideFaults, findSolicitFault } from '../../../inspection/faults/find-setting-fault.ts';
import type { ModelEni } from '../../../inspection/model/node-model.ts';
import type { NodePod } from '../../../inspection/node/join-pods.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { type Check, done } from './check.ts';

/** Checks that the node can find the gateways of its ENIs and its Pods, and that Pods answer and send far enough. */
export const FIXED_NEIGHBOURS_CHECK: Check = {
  id: 'fixed-neighbours',
  scope: 'no fixed neighbour and no setting of others keeps the node from gateways and Pods',
  finds: ['neigh-wrong-mac', 'setting-stops-packets'],
  evaluate: ({ model, node }) => {
    const { enis, pods } = model;
    return done(
      uniqueFindings([...enis.flatMap((eni) => ofEni(node, eni)), ...pods.flatMap((pod) => ofPod(node, pod))]),
    );
  },
};

function ofEni({ host }: NodeFacts, { link, table, name }: ModelEni): readonly Finding[] {
  if (link === undefined) return [];
  const { ifindex, ifname } = link;
  const gateways = host.routes.flatMap(({ table: of, gateway }) =>
    of === table && gateway !== undefined ? [gateway] : [],
  );
  return [...new Set(gateways)].flatMap((ip) => [
    ...present(findStaticNeighbour(host, { ip, ifindex, ifname, title: `the gateway of ${name}`, mac: undefined })),
    ...present(findSolicitFault(host, ifname, familyOf(ip))),
  ]);
}

function ofPod(
  { host }: NodeFacts,
  { pod, ifName, podLink, hostLink, lease, name: title, ips }: NodePod,
): readonly Finding[] {
  const inside = ifKnown(pod.inside);
  const prefix = `nsenter --net=${lease?.netns ?? '<netns>'} `;
  // Of a Pod with an ENI of its own the node reaches the other end of the veth pair.
  const end =
    lease?.plugin === 'direct-eni' ? inside?.links.find(({ ifindex }) => ifindex === hostLink?.link) : podLink;
  const mac = end?.address;
  return ips.flatMap((ip) => [
    ...(hostLink === undefined || mac === undefined
      ? []
      : present(findStaticNeighbour(host, { ip, ifindex: hostLink.ifindex, ifname: hostLink.ifname, title, mac }))),
    ...(hostLink === undefined ? [] : present(findSolicitFault(host, hostLink.ifname, familyOf(ip)))),
    ...(inside === undefined ? [] : findInsideFaults(inside, { title, ifName, prefix }, familyOf(ip))),
  ]);
}

function present<T>(value: T | undefined): readonly T[] {
  return value === undefined ? [] : [value];
}

import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId, podId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { buildOutline, type EniOutline } from '../../../inspection/model/build-outline.ts';
import type { NodePod } from '../../../inspection/node/join-pods.ts';
import { type Check, done, skipped } from './check.ts';

/** Checks the MTUs on a packet's path: in the Pod, on its host interface, the ENI, the primary interface. */
export const MTU_CHECK: Check = {
  id: 'mtu',
  scope: 'MTU of Pods, their host interfaces, ENIs and the primary interface',
  finds: ['mtu-mismatch', 'mtu-path'],
  evaluate: ({ node, differences }) => {
    const { primary, enis, pods } = buildOutline(node);
    if (enis.length === 0 && pods.length === 0) return skipped('there are no ENIs and no Pods');
    const present = enis.flatMap(({ link }) => (link === undefined ? [] : [link]));
    const different = primary === undefined ? [] : present.filter(({ mtu }) => mtu !== primary.mtu);
    const path =
      primary === undefined || different.length === 0
        ? []
        : [
            finding('mtu-path', {
              what: `${different.map(({ ifname, mtu }) => `${ifname} has MTU ${mtu}`).join(', ')}, the primary ${primary.ifname} ${primary.mtu}`,
              fix: different.map(({ ifname }) => `ip link set ${ifname} mtu ${primary.mtu}`),
              subjects: [primary, ...different].map(({ ifindex }) => linkId(ifindex)),
            }),
          ];
    const mtus = [...new Set([...(primary === undefined ? [] : [primary.mtu]), ...present.map(({ mtu }) => mtu)])];
    return done(
      [
        ...(differences.kind === 'known' ? [] : pods.flatMap(ofPair)),
        ...enis.flatMap((eni) => ofEni(eni, pods)),
        ...path,
      ],
      [`MTU ${mtus.join(', ')}`],
    );
  },
};

/** Returns the MTU of the lease; without a lease the larger one of both ends. */
function largestOf({ lease, hostLink, podLink }: NodePod): number {
  return lease?.mtu ?? Math.max(hostLink?.mtu ?? 0, podLink?.mtu ?? 0);
}

function ofPair({ pod, ifName, hostLink, podLink, title }: NodePod): readonly Finding[] {
  if (hostLink === undefined || podLink === undefined || podLink.mtu === hostLink.mtu) return [];
  const what = `${ifName} in ${title} has MTU ${podLink.mtu}, its host interface ${hostLink.ifname} ${hostLink.mtu}`;
  const fix = ['tke-eni repair'];
  return [finding('mtu-mismatch', { what, fix, subjects: [podId(pod.key), linkId(hostLink.ifindex)] })];
}

/** Returns one finding for all Pods of an ENI, because the ENI's MTU has to change. */
function ofEni({ link, eniId, table, title }: EniOutline, pods: readonly NodePod[]): readonly Finding[] {
  if (link === undefined) return [];
  const isOn = ({ lease, hostLink }: NodePod) =>
    lease === undefined ? hostLink?.group === table : lease.eniId === eniId;
  const large = pods.filter((pod) => isOn(pod) && largestOf(pod) > link.mtu);
  const [first] = large;
  if (first === undefined) return [];
  const mtu = Math.max(...large.map(largestOf));
  const who = large.length === 1 ? first.title : `${first.title} and ${large.length - 1} more`;
  const what = `${who} may send ${mtu} bytes, ${title} takes ${link.mtu}`;
  const fix = ['tke-eni repair', `ip link set ${link.ifname} mtu ${mtu}`];
  const subjects = [linkId(link.ifindex), ...large.map(({ pod }) => podId(pod.key))];
  return [finding('mtu-mismatch', { what, fix, subjects })];
}

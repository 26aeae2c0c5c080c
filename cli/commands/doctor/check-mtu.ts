import type { LinkMessage } from '../../../netlink/link-message.ts';
import { finding } from '../../catalogue/catalogue.ts';
import { linkId, podId } from '../../catalogue/element-id.ts';
import type { Finding } from '../../catalogue/finding.ts';
import { ifKnown } from '../../node/known.ts';
import type { PodFacts } from '../../node/node-facts.ts';
import { buildOutline, type EniOutline, type PodOutline } from './build-outline.ts';
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
function largestOf({ pod, lease, link }: PodOutline): number {
  return lease?.mtu ?? Math.max(link?.mtu ?? 0, insideOf(pod)?.mtu ?? 0);
}

function insideOf(pod: PodFacts): LinkMessage | undefined {
  return ifKnown(pod.inside)?.links.find(({ ifname }) => ifname === ifNameOf(pod));
}

function ifNameOf({ key }: PodFacts): string {
  return key.slice(key.indexOf('/') + 1);
}

function ofPair({ pod, link, title }: PodOutline): readonly Finding[] {
  const inside = insideOf(pod);
  if (link === undefined || inside === undefined || inside.mtu === link.mtu) return [];
  const what = `${ifNameOf(pod)} in ${title} has MTU ${inside.mtu}, its host interface ${link.ifname} ${link.mtu}`;
  const fix = ['tke-eni repair'];
  return [finding('mtu-mismatch', { what, fix, subjects: [podId(pod.key), linkId(link.ifindex)] })];
}

/** Returns one finding for all Pods of an ENI, because the ENI's MTU has to change. */
function ofEni({ link, eniId, table, title }: EniOutline, pods: readonly PodOutline[]): readonly Finding[] {
  if (link === undefined) return [];
  const isOn = ({ lease, link: veth }: PodOutline) =>
    lease === undefined ? veth?.group === table : lease.eniId === eniId;
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

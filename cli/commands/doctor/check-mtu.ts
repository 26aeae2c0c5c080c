import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId } from '../../../inspection/catalogue/element-id.ts';
import { type Check, done, skipped } from './check.ts';

/** Checks the MTUs on a packet's path: in the Pod, on its host interface, the ENI, the primary interface. */
export const MTU_CHECK: Check = {
  id: 'mtu',
  scope: 'MTU of Pods, their host interfaces, ENIs and the primary interface',
  finds: ['mtu-mismatch', 'mtu-path'],
  evaluate: ({ model }) => {
    const { primary, enis, pods } = model;
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
    return done(path, [`MTU ${mtus.join(', ')}`]);
  },
};

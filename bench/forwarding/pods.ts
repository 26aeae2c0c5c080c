import type { EniPodNetwork } from '../../dataplane/network.ts';

/** MACs of the measured Pod's two ends. */
export const podMac = { host: '02:00:00:00:00:01', pod: '02:00:00:00:00:02' } as const;

/** A Pod; `ifindex` is that of its host end when it is there already. */
export function unwiredPod(ip: string, eniTable: number, ifname: string, ifindex?: number): EniPodNetwork {
  return {
    key: { containerId: ifname, ifName: 'eth0' },
    kind: 'route-eni',
    ips: [ip],
    eniTable,
    hostVeth: { name: ifname, mac: podMac.host, ...(ifindex !== undefined && { ifindex }) },
    podVeth: { name: 'eth0', mac: podMac.pod },
    mtu: 1500,
    alias: `tke-eni/${ifname}/eth0`,
  };
}

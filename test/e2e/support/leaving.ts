import { join } from 'node:path';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { DIST_BIN_DIR } from '../../support/executables.ts';
import type { SceneNode } from './scene-node.ts';

/** A node of a cluster forwards whoever does its network, so an uninstallation leaves it on. */
export const FORWARDING = { 'net/ipv4/ip_forward': 1, 'net/ipv6/conf/all/forwarding': 1 };

/** Settings that an agent changes and must give back; forwarding is left on by decision, and so not among them. */
const SETTINGS = 'grep -rsH . /proc/sys/net/ipv4/conf/*/rp_filter /proc/sys/net/ipv6/conf/*/disable_ipv6 | sort';

/** All that the kernel of a node holds, by programs that are not ours. */
export async function snapshot(netns: NetnsView): Promise<unknown> {
  const links = await netns.ipJson('-d', 'link');
  return {
    links: links.map(({ ifindex, ifname, flags, mtu, group, ifalias, address }) => ({
      ...{ ifindex, ifname, mtu, group, ifalias, address },
      isUp: Array.isArray(flags) && flags.includes('UP'),
    })),
    addresses: (await netns.ipJson('address')).map(({ ifname, addr_info: info }) => ({
      ifname,
      info: (info as { local: string; prefixlen: number; scope: string }[]).map(({ local, prefixlen, scope }) => ({
        ...{ local, prefixlen, scope },
      })),
    })),
    rules: [await netns.ipJson('-4', 'rule'), await netns.ipJson('-6', 'rule')],
    routes: [
      await netns.ipJson('-4', 'route', 'show', 'table', 'all'),
      await netns.ipJson('-6', 'route', 'show', 'table', 'all'),
    ],
    permanent: await netns.ipJson('neigh', 'show', 'nud', 'permanent'),
    nft: (await netns.nftJson('ruleset'))?.filter((item) => !('metainfo' in item)),
    settings: await netns.run(['sh', '-c', SETTINGS]),
  };
}

/** The command line that uninstalls what the agent of a node of a scene installed. */
export function uninstallArgv({ dir }: SceneNode, flags: readonly string[] = []): readonly string[] {
  return [
    join(DIST_BIN_DIR, 'tke-eni-agent'),
    'uninstall',
    `--socket=${join(dir, 'agent.sock')}`,
    `--state-dir=${join(dir, 'state')}`,
    `--cni-bin-dir=${join(dir, 'cni-bin')}`,
    `--cni-conf-dir=${join(dir, 'cni-conf')}`,
    `--plugin-dir=${DIST_BIN_DIR}`,
    `--kubelet-dir=${join(dir, 'kubelet')}`,
    '--host-root=/',
    '--cri-socket=',
    ...flags,
  ];
}

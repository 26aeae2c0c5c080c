import test from 'ava';
import type { Check } from '../../../../cli/commands/doctor/check.ts';
import { FORWARDING_CHECK } from '../../../../cli/commands/doctor/check-forward.ts';
import { NETWORK_MANAGER_CHECK } from '../../../../cli/commands/doctor/check-network-manager.ts';
import {
  CLOUD_INIT_CHECK,
  DHCP_CHECK,
  NETWORKD_CHECK,
} from '../../../../cli/commands/doctor/check-network-services.ts';
import { MAC_CHECK } from '../../../../cli/commands/doctor/check-pod-links.ts';
import { RP_FILTER_CHECK } from '../../../../cli/commands/doctor/check-rp-filter.ts';
import { readSysctlFiles } from '../../../../cli/commands/doctor/read-conf-files.ts';
import {
  readCloudInit,
  readNetworkd,
  readNetworkManager,
} from '../../../../cli/commands/doctor/read-network-services.ts';
import type { HostTree } from '../../../../inspection/node/host-tree.ts';
import { known } from '../../../../inspection/node/known.ts';
import { doctorFacts, healthyNode, hostTree, idsOf, nodeWith } from './facts.ts';

// Trees of files as distributions lay them out, read by the real readers.

type Case = {
  readonly when: string;
  readonly files: Readonly<Record<string, string>>;
  readonly finds: readonly string[];
};

function cases(
  check: Check,
  facts: (tree: HostTree) => Parameters<typeof doctorFacts>[0],
  list: readonly Case[],
): void {
  for (const { when, files, finds } of list) {
    const what = finds.length === 0 ? 'finds nothing' : `finds ${finds.join(', ')}`;
    test(`${check.id}: ${what} when ${when}`, (t) => {
      using host = hostTree(files);
      t.deepEqual(idsOf(check, doctorFacts(facts(host.tree))), finds);
    });
  }
}

const NETWORKD_RUNS = { '/run/systemd/units/invocation:systemd-networkd.service': '' };
const V249 = { '/usr/lib/x86_64-linux-gnu/systemd/libsystemd-shared-249.so': '' };
const OFF = '[Network]\nManageForeignRoutingPolicyRules=no\nManageForeignRoutes=no\n';

cases(NETWORKD_CHECK, (tree) => ({ networkd: known(readNetworkd(tree)) }), [
  { when: 'it runs with its defaults', files: { ...NETWORKD_RUNS, ...V249 }, finds: ['networkd'] },
  {
    when: 'its version is not known',
    files: NETWORKD_RUNS,
    finds: ['networkd'],
  },
  {
    when: 'a drop-in turns both off',
    files: { ...NETWORKD_RUNS, ...V249, '/etc/systemd/networkd.conf.d/10-eni.conf': OFF },
    finds: [],
  },
  {
    when: 'only rules are turned off',
    files: {
      ...NETWORKD_RUNS,
      ...V249,
      '/etc/systemd/networkd.conf': '[Network]\nManageForeignRoutingPolicyRules = false\n',
    },
    finds: ['networkd'],
  },
  {
    when: 'a later drop-in turns them on again',
    files: {
      ...NETWORKD_RUNS,
      ...V249,
      '/etc/systemd/networkd.conf.d/10-eni.conf': OFF,
      '/run/systemd/networkd.conf.d/20-vendor.conf': '[Network]\nManageForeignRoutingPolicyRules=yes\n',
    },
    finds: ['networkd'],
  },
  {
    when: 'a file for the driver of its NICs matches',
    files: {
      ...NETWORKD_RUNS,
      '/etc/systemd/networkd.conf.d/10-eni.conf': OFF,
      '/sys/class/net/eth1/device/driver': '->../../../../bus/virtio/drivers/virtio_net',
      '/etc/systemd/network/10-virtio.network': '[Match]\nDriver=virtio_net\n[Network]\nDHCP=yes\n',
    },
    finds: ['networkd-manages-eni'],
  },
  {
    when: 'a file matches, and its drop-in leaves the links alone',
    files: {
      ...NETWORKD_RUNS,
      '/etc/systemd/networkd.conf.d/10-eni.conf': OFF,
      '/run/systemd/network/10-netplan-all.network': '[Match]\nName=e*\n[Network]\nDHCP=yes\n',
      '/etc/systemd/network/10-netplan-all.network.d/eni.conf': '[Link]\nUnmanaged=yes\n',
    },
    finds: [],
  },
  {
    when: 'systemd is too old to keep a link for each unit',
    files: {
      '/run/systemd/system/README': '',
      '/sys/fs/cgroup/systemd/system.slice/systemd-networkd.service/tasks': '',
    },
    finds: ['networkd'],
  },
  {
    when: 'the vendor’s drop-in is masked by one of /etc',
    files: {
      ...NETWORKD_RUNS,
      ...V249,
      '/etc/systemd/networkd.conf.d/10-eni.conf': OFF,
      '/etc/systemd/networkd.conf.d/20-vendor.conf': '->/dev/null',
      '/usr/lib/systemd/networkd.conf.d/20-vendor.conf': '[Network]\nManageForeignRoutes=yes\n',
    },
    finds: [],
  },
  {
    when: 'it is older than the removal of foreign rules',
    files: { ...NETWORKD_RUNS, '/lib/systemd/libsystemd-shared-245.so': '' },
    finds: [],
  },
  {
    when: 'a .network file for all Ethernet matches the ENIs',
    files: {
      ...NETWORKD_RUNS,
      ...V249,
      '/etc/systemd/networkd.conf': OFF,
      '/etc/systemd/network/99-dhcp.network': '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n',
    },
    finds: ['networkd-manages-eni', 'networkd-manages-eni', 'networkd-manages-eni'],
  },
  {
    when: 'an earlier file leaves all but the primary alone',
    files: {
      ...NETWORKD_RUNS,
      ...V249,
      '/etc/systemd/networkd.conf': OFF,
      '/etc/systemd/network/05-others.network': '[Match]\nName=!eth0\n[Link]\nUnmanaged=yes\n',
      '/usr/lib/systemd/network/99-dhcp.network': '[Match]\nName=en* eth*\n[Network]\nDHCP=yes\n',
    },
    finds: [],
  },
  {
    when: 'files match the primary by MAC, or by what Pods do not have',
    files: {
      ...NETWORKD_RUNS,
      ...V249,
      '/etc/systemd/networkd.conf': OFF,
      '/run/systemd/network/10-netplan-eth0.network': '[Match]\nMACAddress=52:54:00:00:00:01\n[Network]\nDHCP=ipv4\n',
      '/usr/lib/systemd/network/80-container-ve.network':
        '[Match]\nKind=veth\nName=ve-*\nDriver=veth\n[Network]\nDHCPServer=yes\n',
    },
    finds: [],
  },
]);

test('networkd: is skipped when it does not run, or when the host’s files are not to be seen', (t) => {
  const whyOf = (files: Readonly<Record<string, string>>) => {
    using host = hostTree(files);
    const verdict = NETWORKD_CHECK.evaluate(doctorFacts({ networkd: known(readNetworkd(host.tree)) }));
    return verdict.kind === 'skipped' ? verdict.why : '';
  };
  t.is(whyOf({ '/run/systemd/units/invocation:ssh.service': '' }), 'systemd-networkd does not run');
  t.regex(whyOf({ '/etc/hostname': 'container' }), /--host-root/);
});

const NM_RUNS = { '/run/systemd/units/invocation:NetworkManager.service': '' };

cases(NETWORK_MANAGER_CHECK, (tree) => ({ networkManager: known(readNetworkManager(tree)) }), [
  { when: 'it runs with its defaults', files: NM_RUNS, finds: ['network-manager'] },
  {
    when: 'ENIs are unmanaged by name',
    files: {
      ...NM_RUNS,
      '/etc/NetworkManager/conf.d/10-eni.conf':
        '[keyfile]\nunmanaged-devices=interface-name:eth[1-9];interface-name:eni*\n',
    },
    finds: [],
  },
  {
    when: 'all but the primary are unmanaged',
    files: {
      ...NM_RUNS,
      '/usr/lib/NetworkManager/conf.d/10-cloud.conf': '[keyfile]\nunmanaged-devices=*,except:interface-name:eth0\n',
    },
    finds: [],
  },
  {
    when: 'a later file forgets what an earlier one left alone',
    files: {
      ...NM_RUNS,
      '/etc/NetworkManager/conf.d/10-eni.conf': '[keyfile]\nunmanaged-devices=type:ethernet\n',
      '/etc/NetworkManager/conf.d/20-docker.conf': '[keyfile]\nunmanaged-devices=interface-name:docker0\n',
    },
    finds: ['network-manager'],
  },
  {
    when: 'a later file adds to an earlier one',
    files: {
      ...NM_RUNS,
      '/etc/NetworkManager/conf.d/10-eni.conf': '[keyfile]\nunmanaged-devices=type:ethernet\n',
      '/etc/NetworkManager/conf.d/20-docker.conf': '[keyfile]\nunmanaged-devices+=interface-name:docker0\n',
    },
    finds: [],
  },
  {
    when: 'a device section takes Ethernet out',
    files: {
      ...NM_RUNS,
      '/etc/NetworkManager/NetworkManager.conf': '[device-eni]\nmatch-device=type:ethernet\nmanaged=0\n',
    },
    finds: [],
  },
  {
    when: 'its own notes say that it manages none, whatever its files say',
    files: {
      ...NM_RUNS,
      '/run/NetworkManager/devices/3': '[device]\nmanaged=false\n',
      '/run/NetworkManager/devices/4': '[device]\nmanaged=false\n',
    },
    finds: [],
  },
  {
    when: 'its own notes say that it has taken a Pod’s interface',
    files: {
      ...NM_RUNS,
      '/etc/NetworkManager/conf.d/10-eni.conf': '[main]\nno-auto-default=*\n',
      '/run/NetworkManager/devices/100': '[device]\nmanaged=true\nconnection-uuid=5f1a\n',
    },
    finds: ['network-manager'],
  },
]);

const CLOUD_CFG = '#cloud-config\nusers:\n - default\n';

cases(CLOUD_INIT_CHECK, (tree) => ({ cloudInit: known(readCloudInit(tree)) }), [
  { when: 'it asks for nothing', files: { '/etc/cloud/cloud.cfg': CLOUD_CFG }, finds: [] },
  {
    when: 'hotplug is among its events',
    files: {
      '/etc/cloud/cloud.cfg': CLOUD_CFG,
      '/etc/cloud/cloud.cfg.d/50-hp.cfg': 'updates:\n  network:\n    when: [boot, hotplug]\n',
    },
    finds: ['cloud-init-hotplug'],
  },
  {
    when: 'a later file takes hotplug back',
    files: {
      '/etc/cloud/cloud.cfg': 'updates: {network: {when: [hotplug]}}\n',
      '/etc/cloud/cloud.cfg.d/99-eni.cfg': 'updates:\n  network:\n    when: [boot-new-instance]\n',
    },
    finds: [],
  },
  {
    when: 'udev has its rule',
    files: {
      '/etc/cloud/cloud.cfg': CLOUD_CFG,
      '/etc/udev/rules.d/90-cloud-init-hook-hotplug.rules': 'SUBSYSTEM=="net"\n',
    },
    finds: ['cloud-init-hotplug'],
  },
  {
    when: 'the rule is only shipped, and its socket is off',
    files: {
      '/etc/cloud/cloud.cfg': CLOUD_CFG,
      '/usr/lib/udev/rules.d/90-cloud-init-hook-hotplug.rules': 'SUBSYSTEM=="net"\n',
    },
    finds: [],
  },
  {
    when: 'its network part is disabled',
    files: {
      '/etc/cloud/cloud.cfg': 'updates: {network: {when: [hotplug]}}\n',
      '/etc/cloud/cloud.cfg.d/99-off.cfg': 'network: {config: disabled}\n',
    },
    finds: [],
  },
  {
    when: 'it is disabled altogether',
    files: { '/etc/cloud/cloud.cfg': 'updates: {network: {when: [hotplug]}}\n', '/etc/cloud/cloud-init.disabled': '' },
    finds: [],
  },
]);

cases(RP_FILTER_CHECK, (tree) => ({ sysctlFiles: known(readSysctlFiles(tree)) }), [
  {
    when: 'all is strict at boot: the larger one counts, and ours is loose',
    files: { '/etc/sysctl.d/50-cis.conf': 'net.ipv4.conf.all.rp_filter = 1\nnet.ipv4.conf.default.rp_filter=1\n' },
    finds: [],
  },
  {
    when: 'a glob makes every interface strict',
    files: { '/usr/lib/sysctl.d/50-default.conf': 'net.ipv4.conf.*.rp_filter = 1\n-net.ipv4.conf.all.rp_filter\n' },
    finds: ['rp-filter-at-boot'],
  },
  {
    when: 'the glob’s file is overridden by one of the same name',
    files: {
      '/usr/lib/sysctl.d/50-default.conf': 'net.ipv4.conf.*.rp_filter = 1\n',
      '/etc/sysctl.d/50-default.conf': 'net.ipv4.conf.*.rp_filter = 2\n',
    },
    finds: [],
  },
  {
    when: 'each of ours is set loose beside the glob',
    files: {
      '/usr/lib/sysctl.d/50-default.conf': 'net.ipv4.conf.*.rp_filter = 1\n',
      '/etc/sysctl.d/99-eni.conf':
        '# ours\nnet/ipv4/conf/eth0/rp_filter=2\nnet.ipv4.conf.eth1.rp_filter=2\n-net.ipv4.conf.eth2.rp_filter = 2\n',
    },
    finds: [],
  },
]);

cases(FORWARDING_CHECK, (tree) => ({ sysctlFiles: known(readSysctlFiles(tree)) }), [
  {
    when: '/etc/sysctl.conf turns it off',
    files: { '/etc/sysctl.conf': 'net.ipv4.ip_forward=0\n' },
    finds: ['ip-forward-at-boot'],
  },
  {
    when: 'a later file turns it on again',
    files: {
      '/etc/sysctl.conf': '; hardening\nnet.ipv4.ip_forward=0\n',
      '/etc/sysctl.d/99-sysctl.conf': '->../sysctl.conf',
      '/etc/sysctl.d/99-z-kubernetes.conf': 'net.ipv4.ip_forward = 1\n',
    },
    finds: [],
  },
]);

const PERSISTENT = {
  '/usr/lib/systemd/network/99-default.link': '[Match]\nOriginalName=*\n[Link]\nMACAddressPolicy=persistent\n',
};
const CHANGED_MAC = () =>
  nodeWith(({ links }) => ({
    links: links.map((link) => (link.ifindex === 100 ? { ...link, address: 'aa:bb:cc:dd:ee:ff' } : link)),
  }));

cases(MAC_CHECK, (tree) => ({ networkd: known(readNetworkd(tree)) }), [
  { when: 'udev’s policy is persistent and our MACs are there', files: PERSISTENT, finds: [] },
]);
cases(MAC_CHECK, (tree) => ({ networkd: known(readNetworkd(tree)), node: CHANGED_MAC() }), [
  {
    when: 'a MAC changed and the policy is persistent',
    files: PERSISTENT,
    finds: ['veth-mac-changed', 'mac-address-policy'],
  },
  {
    when: 'a MAC changed and a file keeps udev away',
    files: {
      ...PERSISTENT,
      '/etc/systemd/network/10-eni.link': '[Match]\nOriginalName=eni*\n[Link]\nMACAddressPolicy=none\n',
    },
    finds: ['veth-mac-changed'],
  },
]);

test('dhcp: finds a client on an ENI, not one on the primary interface', (t) => {
  const client = (ifname: string) => known([{ pid: 7, args: ['/sbin/dhclient', '-1', ifname] }]);
  t.deepEqual(idsOf(DHCP_CHECK, doctorFacts({ dhcpClients: client('eth1') })), ['dhclient']);
  t.deepEqual(idsOf(DHCP_CHECK, doctorFacts({ dhcpClients: client('eth0'), node: healthyNode() })), []);
});

import { parse } from 'yaml';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import type { NodeModel } from '../../../inspection/model/node-model.ts';
import { type Check, done, notRunning, skipped, whenKnown } from './check.ts';
import type { NetworkdFacts } from './doctor-facts.ts';
import { findLinkFile, lastValue } from './find-link-file.ts';
import { iniBoolean, parseIni } from './parse-ini.ts';
import type { ConfFile } from './read-conf-files.ts';

/**
 * First release of systemd that removes unknown rules. @see systemd NEWS 248, github.com/systemd/systemd/issues/19106
 */
const REMOVES_RULES = 248;
/** First release of systemd with an option against it. @see systemd NEWS 249 */
const HAS_OPTION = 249;

/** Checks that systemd-networkd neither removes our rules and routes nor configures our interfaces. */
export const NETWORKD_CHECK: Check = {
  id: 'networkd',
  scope: 'systemd-networkd leaves our rules, routes and interfaces alone',
  finds: ['networkd', 'networkd-manages-eni'],
  evaluate: ({ model, networkd }) =>
    whenKnown(networkd, (facts) => {
      if (!facts.isActive) return notRunning('systemd-networkd', facts);
      const outline = model;
      return done(
        [...foreignRemovalFindings(facts), ...managedLinkFindings(facts, outline)],
        [`systemd ${facts.version ?? 'of unknown version'}`],
      );
    }),
};

function foreignRemovalFindings({ conf, version }: NetworkdFacts): readonly Finding[] {
  if (version !== undefined && version < REMOVES_RULES) return [];
  const entries = conf.flatMap(({ text }) => parseIni(text));
  const isDisabled = (key: string) => iniBoolean(lastValue(entries, 'Network', key)) === false;
  const keys = ['ManageForeignRoutingPolicyRules', 'ManageForeignRoutes'].filter((key) => !isDisabled(key));
  if (keys.length === 0) return [];
  const isDefault = keys.every((key) => lastValue(entries, 'Network', key) === undefined);
  const what = `systemd-networkd runs with ${keys.map((key) => `${key}=yes`).join(' and ')}${isDefault ? ' (its default)' : ''}`;
  const file = '/etc/systemd/networkd.conf.d/10-tke-eni.conf';
  const fix =
    version !== undefined && version < HAS_OPTION
      ? [`update systemd: ${version} removes foreign rules and has no option against it; ${HAS_OPTION} has one`]
      : [
          'mkdir -p /etc/systemd/networkd.conf.d',
          `printf '[Network]\\nManageForeignRoutingPolicyRules=no\\nManageForeignRoutes=no\\n' >${file}`,
          'systemctl restart systemd-networkd',
        ];
  return [finding('networkd', { what, fix, subjects: [] })];
}

function managedLinkFindings({ networks, drivers }: NetworkdFacts, { enis, pods }: NodeModel): readonly Finding[] {
  const links = [
    ...enis.flatMap(({ link, name: title }) => (link === undefined ? [] : [{ link, title, isPods: false }])),
    // One Pod represents all: a file that matches one of our names matches the others too.
    ...pods
      .flatMap(({ hostLink: link, name }) =>
        link === undefined ? [] : [{ link, title: `${link.ifname} of ${name}`, isPods: true }],
      )
      .slice(0, 1),
  ];
  return links.flatMap(({ link, title, isPods }): readonly Finding[] => {
    const { ifname, address: mac, kind } = link;
    const file = findLinkFile(networks, { ifname, mac, kind, driver: drivers.get(ifname) });
    if (file === undefined || iniBoolean(lastValue(file.entries, 'Link', 'Unmanaged')) === true) return [];
    const dhcp = lastValue(file.entries, 'Network', 'DHCP') ?? 'no';
    const what = `${file.path} matches ${title}: networkd configures it (DHCP=${dhcp})`;
    // One file for each interface, so that one fix does not undo another.
    const unmanaged = `/etc/systemd/network/00-tke-eni-${isPods ? 'pods' : ifname}.network`;
    const match = isPods ? 'Name=eni*' : `MACAddress=${mac ?? ''}`;
    const fix = [`printf '[Match]\\n${match}\\n\\n[Link]\\nUnmanaged=yes\\n' >${unmanaged}`, 'networkctl reload'];
    return [finding('networkd-manages-eni', { what, fix, subjects: [linkId(link.ifindex)] })];
  });
}

/** Checks that no DHCP client runs on an ENI. */
export const DHCP_CHECK: Check = {
  id: 'dhcp',
  scope: 'no DHCP client runs on an ENI',
  finds: ['dhclient'],
  evaluate: ({ model, dhcpClients }) =>
    whenKnown(dhcpClients, (clients) => {
      const { enis } = model;
      const findings = clients.flatMap(({ pid, args }) =>
        enis
          .filter(({ ifname }) => ifname !== undefined && args.includes(ifname))
          .map(({ name: title, ifname, ifindex }) =>
            finding('dhclient', {
              what: `process ${pid} is a DHCP client on ${title}: ${args.join(' ')}`,
              fix: [`kill ${pid}`, `remove ${ifname} from /etc/network/interfaces.d or /etc/sysconfig/network-scripts`],
              subjects: ifindex === undefined ? [] : [linkId(ifindex)],
            }),
          ),
      );
      return done(findings, [`${clients.length} DHCP clients run`]);
    }),
};

/** Checks that cloud-init does not configure NICs that are attached later. */
export const CLOUD_INIT_CHECK: Check = {
  id: 'cloud-init',
  scope: 'cloud-init does not configure NICs when they are attached',
  finds: ['cloud-init-hotplug'],
  evaluate: ({ cloudInit }) =>
    whenKnown(cloudInit, ({ isInstalled, isDisabled, conf, hotplugRule }) => {
      if (!isInstalled) return skipped('cloud-init is not installed');
      if (isDisabled) return done([], ['it is disabled']);
      const network = lastOf(conf, (document) => get(document, 'network', 'config'));
      if (network?.value === 'disabled') return done([], [`${network.path} disables its network part`]);
      const when = lastOf(conf, (document) => get(document, 'updates', 'network', 'when'));
      const isConfigured = Array.isArray(when?.value) && when.value.includes('hotplug');
      if (!isConfigured && hotplugRule === undefined) return done([], ['no hot-plug']);
      const what = isConfigured
        ? `${when?.path} has hotplug in updates.network.when`
        : `${hotplugRule} calls cloud-init for each new NIC`;
      const fix = [
        "printf 'updates:\\n  network:\\n    when: [boot-new-instance]\\n' >/etc/cloud/cloud.cfg.d/99-tke-eni.cfg",
        ...(hotplugRule === undefined
          ? []
          : [
              'systemctl disable --now cloud-init-hotplugd.socket',
              // The file of the package returns with its next update, and has no effect without the socket.
              ...(hotplugRule.startsWith('/etc/') || hotplugRule.startsWith('/run/') ? [`rm ${hotplugRule}`] : []),
            ]),
        'udevadm control --reload',
      ];
      return done([finding('cloud-init-hotplug', { what, fix, subjects: [] })]);
    }),
};

/** Returns the value of the last file that contains it. */
function lastOf(
  conf: readonly ConfFile[],
  read: (document: unknown) => unknown,
): { readonly path: string; readonly value: unknown } | undefined {
  return conf
    .map(({ path, text }) => ({ path, value: read(documentOf(text)) }))
    .findLast(({ value }) => value !== undefined);
}

function documentOf(text: string): unknown {
  try {
    return parse(text, { logLevel: 'error' });
  } catch {
    // cloud-init skips such a file too.
    return undefined;
  }
}

function get(value: unknown, ...keys: readonly string[]): unknown {
  let at = value;
  for (const key of keys) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = Object.entries(at).find(([name]) => name === key)?.[1];
  }
  return at;
}

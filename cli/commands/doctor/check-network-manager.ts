import { matchesGlob } from 'node:path';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { linkId } from '../../../inspection/catalogue/element-id.ts';
import { type Check, done, notRunning, whenKnown } from './check.ts';
import type { NetworkManagerFacts } from './doctor-facts.ts';
import { type IniEntry, iniBoolean, parseIni } from './parse-ini.ts';

/** Checks that NetworkManager does not manage ENIs and the interfaces of Pods. */
export const NETWORK_MANAGER_CHECK: Check = {
  id: 'network-manager',
  scope: 'NetworkManager leaves ENIs and the interfaces of Pods alone',
  finds: ['network-manager'],
  evaluate: ({ model, networkManager }) =>
    whenKnown(networkManager, (facts) => {
      if (!facts.isActive) return notRunning('NetworkManager', facts);
      const { enis, pods } = model;
      const known = [...enis.map(({ link }) => link), ...pods.map(({ hostLink }) => hostLink)];
      const links = known.filter((link) => link !== undefined);
      const taken = links.flatMap((link) => {
        const device: Device = { ifname: link.ifname, mac: link.address, kind: link.kind };
        const isManaged = managedNow(facts, link.ifindex) ?? (link.kind !== 'veth' && isManagedByConf(facts, device));
        return isManaged ? [link] : [];
      });
      const [first] = taken;
      if (first === undefined) return done([], ['it manages no interface of ours']);
      const connection = connectionOf(facts, first.ifindex);
      const names = taken.length === 1 ? first.ifname : `${first.ifname} and ${taken.length - 1} more of ours`;
      const what = `NetworkManager manages ${names}${connection === undefined ? '' : ` (connection ${connection})`}`;
      const macs = enis.flatMap(({ mac }) => (mac === undefined ? [] : [`;mac:${mac}`])).join('');
      const fix = [
        `printf '[keyfile]\\nunmanaged-devices+=interface-name:eni*${macs}\\n' >/etc/NetworkManager/conf.d/99-tke-eni.conf`,
        'systemctl reload NetworkManager',
      ];
      const severity = connection === undefined ? 'warning' : 'error';
      return done([
        finding('network-manager', { what, fix, severity, subjects: taken.map(({ ifindex }) => linkId(ifindex)) }),
      ]);
    }),
};

type Device = { readonly ifname: string; readonly mac: string | undefined; readonly kind: string | undefined };

/**
 * Returns whether NetworkManager manages a device, from its state file; undefined where it has none.
 * @see NetworkManager source: nm_config_device_state_write
 */
function managedNow({ devices }: NetworkManagerFacts, ifindex: number): boolean | undefined {
  const entries = parseIni(devices.get(ifindex) ?? '');
  return iniBoolean(entries.find(({ key }) => key === 'managed')?.value);
}

function connectionOf({ devices }: NetworkManagerFacts, ifindex: number): string | undefined {
  return parseIni(devices.get(ifindex) ?? '').find(({ key }) => key === 'connection-uuid')?.value;
}

/**
 * Returns whether the configuration lets NetworkManager manage a device. Hardware is managed by default, and gets a
 * connection with DHCP. @see NetworkManager.conf(5)
 */
function isManagedByConf({ conf }: NetworkManagerFacts, device: Device): boolean {
  const entries = conf.flatMap(({ text }) => parseIni(text));
  const unmanaged = listOf(entries, 'keyfile', 'unmanaged-devices');
  const noAuto = listOf(entries, 'main', 'no-auto-default');
  const sections = Map.groupBy(
    entries.filter(({ section }) => section.startsWith('device')),
    ({ section }) => section,
  );
  const isOff = [...sections.values()].some(
    (section) =>
      iniBoolean(section.findLast(({ key }) => key === 'managed')?.value) === false &&
      isListed(split(section.findLast(({ key }) => key === 'match-device')?.value ?? '*'), device),
  );
  return !isOff && !isListed(unmanaged, device) && !isListed(noAuto, device);
}

/** Returns the values of a list. A later file replaces them, `+=` adds to them; `-=` is not evaluated. */
function listOf(entries: readonly IniEntry[], section: string, name: string): readonly string[] {
  const ofKey = entries.filter((entry) => entry.section === section && [name, `${name}+`].includes(entry.key));
  const start = ofKey.findLastIndex(({ key }) => key === name);
  return ofKey.slice(Math.max(0, start)).flatMap(({ value }) => split(value));
}

function split(value: string): readonly string[] {
  return value.split(/[,;]/).flatMap((item) => (item.trim() === '' ? [] : [item.trim()]));
}

function isListed(specs: readonly string[], device: Device): boolean {
  const excepted = specs.some((spec) => spec.startsWith('except:') && isMatch(spec.slice('except:'.length), device));
  return !excepted && specs.some((spec) => !spec.startsWith('except:') && isMatch(spec, device));
}

function isMatch(spec: string, { ifname, mac, kind }: Device): boolean {
  if (spec === '*') return true;
  const at = spec.indexOf(':');
  const [word, value] = at < 0 ? ['interface-name', spec] : [spec.slice(0, at), spec.slice(at + 1)];
  switch (word) {
    case 'interface-name':
      return value.startsWith('=') ? ifname === value.slice(1) : matchesGlob(ifname, value.replace(/^~/, ''));
    case 'mac':
      return value.toLowerCase() === mac;
    case 'type':
      return value === (kind ?? 'ethernet');
    case 'driver':
      return value === kind;
    default:
      // A MAC address without a prefix.
      return spec.toLowerCase() === mac;
  }
}

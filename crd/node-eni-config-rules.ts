import type { Faults } from '../runtime/decode.ts';
import { isInCidr } from './ip-text.ts';
import type { NodeEniAddress, NodeEniConfigFields, NodeEniInfo } from './node-eni-config-fields.ts';

/** Adds the faults of a NodeENIConfig whose fields have the right shape; it does not check annotations. */
export function checkNodeEniConfig(config: Pick<NodeEniConfigFields, 'spec' | 'status'>, faults: Faults): void {
  const enis = config.status?.eniInfos ?? [];
  checkWarmTargets(config, faults);
  checkUnique(enis, (eni) => eni.eniID, 'eniID', faults);
  checkUnique(enis, (eni) => eni.mac, 'mac', faults);
  const seen = new Map<string, string>();
  for (const [index, eni] of enis.entries()) checkEni(eni, `status.eniInfos[${index}]`, seen, faults);
}

const FAMILY_FIELDS = {
  4: { primary: 'primaryIP', gateway: 'gateway', subnet: 'subnetCIDR' },
  6: { primary: 'primaryIPv6', gateway: 'gatewayIPv6', subnet: 'subnetIPv6CIDR' },
} as const;

function checkWarmTargets(config: Pick<NodeEniConfigFields, 'spec'>, faults: Faults): void {
  const { spec } = config;
  if (spec?.routeENIIPMinWarmTarget !== undefined && spec.routeENIIPMaxWarmTarget !== undefined) {
    if (spec.routeENIIPMinWarmTarget > spec.routeENIIPMaxWarmTarget) {
      const expected = `a number not below routeENIIPMinWarmTarget, ${spec.routeENIIPMinWarmTarget}`;
      faults.add('spec.routeENIIPMaxWarmTarget', expected, spec.routeENIIPMaxWarmTarget);
    }
  }
}

function checkUnique(
  enis: readonly NodeEniInfo[],
  keyOf: (eni: NodeEniInfo) => string,
  field: string,
  faults: Faults,
): void {
  const seen = new Map<string, number>();
  for (const [index, eni] of enis.entries()) {
    const first = seen.get(keyOf(eni));
    if (first === undefined) seen.set(keyOf(eni), index);
    else faults.add(`status.eniInfos[${index}].${field}`, `another than status.eniInfos[${first}]`, keyOf(eni));
  }
}

function checkEni(eni: NodeEniInfo, path: string, seen: Map<string, string>, faults: Faults): void {
  const subnets = [checkFamily(eni, 4, path, faults), checkFamily(eni, 6, path, faults)];
  if (eni.primaryIP === undefined && eni.primaryIPv6 === undefined) {
    faults.add(`${path}.primaryIP`, "the ENI's own address, or primaryIPv6", undefined);
  }
  const primaries = { primaryIP: eni.primaryIP, primaryIPv6: eni.primaryIPv6 };
  for (const [field, ip] of Object.entries(primaries)) checkNotRepeated(ip, `${path}.${field}`, seen, faults);
  const ips = new Set((eni.addresses ?? []).map((address) => address.ip));
  for (const [index, address] of (eni.addresses ?? []).entries()) {
    const at = `${path}.addresses[${index}]`;
    checkNotRepeated(address.ip, `${at}.ip`, seen, faults);
    checkSubnet(address.ip, `${at}.ip`, subnets, faults);
    checkPair(address, at, ips, faults);
  }
}

/** Adds a fault when an address occurs twice: two Pods would have it. */
function checkNotRepeated(ip: string | undefined, path: string, seen: Map<string, string>, faults: Faults): void {
  if (ip === undefined) return;
  const first = seen.get(ip);
  if (first === undefined) seen.set(ip, path);
  else faults.add(path, `an address that is not at ${first} already`, ip);
}

/** Checks that a family is complete or absent, and returns its subnet. */
function checkFamily(eni: NodeEniInfo, family: 4 | 6, path: string, faults: Faults): string | undefined {
  const fields = FAMILY_FIELDS[family];
  const present = Object.values(fields).filter((field) => eni[field] !== undefined);
  if (present.length === 0) return undefined;
  for (const field of Object.values(fields)) {
    if (eni[field] === undefined)
      faults.add(`${path}.${field}`, `a value, as ${present.join(' and ')} is there`, undefined);
  }
  const subnet = eni[fields.subnet];
  for (const field of [fields.primary, fields.gateway]) {
    const ip = eni[field];
    if (ip !== undefined && subnet !== undefined && !isInCidr(ip, subnet)) {
      faults.add(`${path}.${field}`, `an address in ${fields.subnet} ${subnet}`, ip);
    }
  }
  return subnet;
}

function checkSubnet(ip: string, path: string, subnets: readonly (string | undefined)[], faults: Faults): void {
  const family = ip.includes(':') ? 6 : 4;
  const subnet = subnets[family === 4 ? 0 : 1];
  if (subnet === undefined) {
    faults.add(path, `no IPv${family} address, as the ENI has no ${FAMILY_FIELDS[family].subnet}`, ip);
  } else if (!isInCidr(ip, subnet)) {
    faults.add(path, `an address in ${FAMILY_FIELDS[family].subnet} ${subnet}`, ip);
  }
}

function checkPair(address: NodeEniAddress, path: string, ips: ReadonlySet<string>, faults: Faults): void {
  const { ip, pairedIP } = address;
  if (pairedIP === undefined) return;
  const isOtherFamily = pairedIP.includes(':') !== ip.includes(':');
  if (!isOtherFamily || !ips.has(pairedIP)) {
    faults.add(`${path}.pairedIP`, 'an address of the other family on the same ENI', pairedIP);
  }
}

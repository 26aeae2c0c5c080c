import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { sysctlId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { commentOutOverride, findBootSetting, OUR_SYSCTL_FILE } from './find-boot-setting.ts';

const ALL = 'net.ipv4.conf.all.rp_filter';
const STRICT = 1;

/** Checks reverse path filtering: where it drops packets, and where it prevents that Pods spoof addresses. */
export const RP_FILTER_CHECK: Check = {
  id: 'rp-filter',
  scope: 'rp_filter: not strict on primary and ENIs, strict on Pods’ host interfaces, and what boot sets',
  finds: ['rp-filter-strict', 'rp-filter-off', 'rp-filter-at-boot'],
  evaluate: (facts) => {
    const { model, node } = facts;
    if (node.host.sysctls.get(ALL) === undefined) return skipped(`${ALL} cannot be read; run as root`);
    const { primary, enis } = model;
    const ways = [primary, ...enis.map(({ link }) => link)].filter((link) => link !== undefined);
    const names = ways.map(({ ifname }) => ifname);
    return done(
      [...strictAtBoot(facts, names)],
      names.map((ifname) => `${ifname}: ${effective(node, ifname)}, all: ${node.host.sysctls.get(ALL)}`),
    );
  },
};

/** Returns the value in force: the larger one of `all` and the interface. @see kernel ip-sysctl rp_filter */
function effective({ host }: NodeFacts, ifname: string): number {
  return Math.max(Number(host.sysctls.get(ALL) ?? 0), Number(host.sysctls.get(nameOf(ifname)) ?? 0));
}

function nameOf(ifname: string): string {
  return `net.ipv4.conf.${ifname.replaceAll('.', '/')}.rp_filter`;
}

function strictAtBoot({ sysctlFiles }: DoctorFacts, names: readonly string[]): readonly Finding[] {
  if (sysctlFiles.kind === 'unknown') return [];
  const files = sysctlFiles.value;
  const atBoot = names.flatMap((ifname) => {
    const setting = findBootSetting(files, nameOf(ifname));
    return setting?.value === String(STRICT) ? [{ ifname, setting }] : [];
  });
  const [first] = atBoot;
  if (first === undefined) return [];
  const { path, key } = first.setting;
  const what = `${path} sets ${key} to 1 (strict) at boot, for ${atBoot.map(({ ifname }) => ifname).join(', ')}`;
  const lines = atBoot.map(({ ifname }) => `${nameOf(ifname)} = 2`).join('\\n');
  const fix = [
    ...atBoot.flatMap(({ setting }) => commentOutOverride(setting)),
    `printf '${lines}\\n' >>${OUR_SYSCTL_FILE}`,
    `sysctl -p ${OUR_SYSCTL_FILE}`,
  ];
  return [finding('rp-filter-at-boot', { what, fix, subjects: atBoot.map(({ ifname }) => sysctlId(nameOf(ifname))) })];
}

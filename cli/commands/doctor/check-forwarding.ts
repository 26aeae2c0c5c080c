import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { sysctlId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { buildOutline } from './build-outline.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { commentOutOverride, findBootSetting, OUR_SYSCTL_FILE } from './find-boot-setting.ts';

const IPV4 = 'net.ipv4.ip_forward';
const IPV6 = 'net.ipv6.conf.all.forwarding';

/** Checks that the node forwards packets, now and after the next boot. */
export const FORWARDING_CHECK: Check = {
  id: 'ip-forward',
  scope: 'the node forwards IPv4, and IPv6 where Pods have it, now and at boot',
  finds: ['ip-forward-off', 'ip-forward-at-boot', 'ipv6-disabled'],
  evaluate: (facts) => {
    const { sysctls } = facts.node.host;
    if (sysctls.get(IPV4) === undefined) return skipped('net.ipv4.ip_forward cannot be read; run as root');
    const names = buildOutline(facts.node).families.has(6) ? [IPV4, IPV6] : [IPV4];
    return done([
      ...names.filter((name) => sysctls.get(name) === '0').map(forwardOff),
      ...names.flatMap((name) => offAtBoot(facts, name)),
      ...(names.includes(IPV6) ? ipv6Disabled(facts) : []),
    ]);
  },
};

function forwardOff(name: string): Finding {
  const fix = ['tke-eni repair', `sysctl -w ${name}=1`];
  return finding('ip-forward-off', { what: `${name} is 0`, fix, subjects: [sysctlId(name)] });
}

function offAtBoot({ sysctlFiles }: DoctorFacts, name: string): readonly Finding[] {
  if (sysctlFiles.kind === 'unknown') return [];
  // conf.all.forwarding is another name of ip_forward.
  const names = name === IPV4 ? [IPV4, 'net.ipv4.conf.all.forwarding'] : [name];
  return names.flatMap((each): readonly Finding[] => {
    const setting = findBootSetting(sysctlFiles.value, each);
    if (setting?.value !== '0') return [];
    const what = `${setting.path} sets ${setting.key} to 0 at boot`;
    const fix = [
      ...commentOutOverride(setting),
      `printf '${each} = 1\\n' >>${OUR_SYSCTL_FILE}`,
      `sysctl -p ${OUR_SYSCTL_FILE}`,
    ];
    return [finding('ip-forward-at-boot', { what, fix, subjects: [sysctlId(each)] })];
  });
}

function ipv6Disabled({ node, kernel }: DoctorFacts): readonly Finding[] {
  if (kernel.kind === 'known' && !kernel.value.hasIpv6) {
    const what = 'the node has addresses of IPv6 for Pods, and the kernel was booted without IPv6';
    return [finding('ipv6-disabled', { what, fix: ['grep -o "ipv6.disable=[0-9]" /proc/cmdline'], subjects: [] })];
  }
  const name = 'net.ipv6.conf.all.disable_ipv6';
  if (node.host.sysctls.get(name) !== '1') return [];
  return [finding('ipv6-disabled', { what: `${name} is 1`, fix: [`sysctl -w ${name}=0`], subjects: [sysctlId(name)] })];
}

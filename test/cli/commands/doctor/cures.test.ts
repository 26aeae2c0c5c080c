import { execFileSync } from 'node:child_process';
import test from 'ava';
import type { Check } from '../../../../cli/commands/doctor/check.ts';
import { FORWARDING_CHECK } from '../../../../cli/commands/doctor/check-forward.ts';
import { NETWORKD_CHECK } from '../../../../cli/commands/doctor/check-network-services.ts';
import { RP_FILTER_CHECK } from '../../../../cli/commands/doctor/check-rp-filter.ts';
import type { DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { readSysctlFiles } from '../../../../cli/commands/doctor/read-conf-files.ts';
import { readNetworkd } from '../../../../cli/commands/doctor/read-network-services.ts';
import { known } from '../../../../inspection/node/known.ts';
import { doctorFacts, hostTree, idsOf } from './facts.ts';

// What the doctor tells people to type is typed, and then it finds nothing any more.

const NETWORKD = {
  '/run/systemd/units/invocation:systemd-networkd.service': '',
  '/etc/systemd/network/README': '',
};
const SYSCTL = { '/etc/sysctl.d/README': '' };

type Case = {
  readonly check: Check;
  readonly when: string;
  readonly files: Readonly<Record<string, string>>;
  readonly finds: readonly string[];
  /** What other lines of these files must still say. */
  readonly keeps?: readonly (readonly [string, RegExp])[];
};

const CASES: readonly Case[] = [
  {
    check: NETWORKD_CHECK,
    when: 'its file matches both ENIs and Pods, and it removes rules',
    files: { ...NETWORKD, '/etc/systemd/network/10-all.network': '[Match]\nName=e*\n[Network]\nDHCP=yes\n' },
    finds: ['networkd', 'networkd-manages-eni', 'networkd-manages-eni', 'networkd-manages-eni'],
  },
  {
    check: RP_FILTER_CHECK,
    when: 'the distribution sets it for all, and an administrator for one in a file that counts for more',
    files: {
      ...SYSCTL,
      '/usr/lib/sysctl.d/50-redhat.conf': 'net.ipv4.conf.*.rp_filter=1\n',
      '/etc/sysctl.conf': 'net/ipv4/conf/eth1/rp_filter = 1\n',
    },
    finds: ['rp-filter-at-boot'],
  },
  {
    check: FORWARDING_CHECK,
    when: 'files before and after ours turn it off',
    files: {
      ...SYSCTL,
      '/etc/sysctl.d/10-hard.conf': 'net.ipv4.ip_forward = 0\n',
      '/etc/sysctl.d/zz-hard.conf': 'net.ipv4.ip_forward_use_pmtu = 0\n-net.ipv4.conf.all.forwarding=0\n',
    },
    finds: ['ip-forward-at-boot', 'ip-forward-at-boot'],
    keeps: [['/etc/sysctl.d/zz-hard.conf', /^net\.ipv4\.ip_forward_use_pmtu = 0$/m]],
  },
];

for (const { check, when, files, finds, keeps = [] } of CASES) {
  test(`${check.id}: its cures cure what it finds when ${when}`, (t) => {
    using host = hostTree(files);
    const facts = (): DoctorFacts =>
      doctorFacts({ networkd: known(readNetworkd(host.tree)), sysctlFiles: known(readSysctlFiles(host.tree)) });
    t.deepEqual(idsOf(check, facts()), finds);
    const verdict = check.evaluate(facts());
    for (const { fix } of verdict.kind === 'done' ? verdict.findings : []) typeBelow(host.tree.root, fix);
    t.deepEqual(idsOf(check, facts()), []);
    for (const [path, text] of keeps) t.regex(host.tree.text(path) ?? '', text);
  });
}

/** Types lines as on a host whose root is this folder; what asks running services to look is left out. */
function typeBelow(root: string, lines: readonly string[]): void {
  const typed = lines.filter((line) => !/^(systemctl|networkctl|sysctl|tke-eni) /.test(line));
  for (const line of typed) {
    execFileSync('sh', ['-c', line.replaceAll(/(?<=[ >])\/(?=etc\/)/g, `${root}/`)]);
  }
}

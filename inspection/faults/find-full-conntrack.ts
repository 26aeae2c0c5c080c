import { finding } from '../catalogue/catalogue.ts';
import { sysctlId } from '../catalogue/element-id.ts';
import type { Finding } from '../catalogue/finding.ts';
import type { NetnsFacts } from '../node/node-facts.ts';

const MAX = 'net.netfilter.nf_conntrack_max';

/** Finds that the connection tracking table is full: the first packet of a new connection is dropped. */
export function findFullConntrack({ sysctls }: Pick<NetnsFacts, 'sysctls'>): Finding | undefined {
  const count = Number(sysctls.get('net.netfilter.nf_conntrack_count') ?? Number.NaN);
  const max = Number(sysctls.get(MAX) ?? Number.NaN);
  // 0 is no limit.
  if (!(max > 0 && count >= max)) return undefined;
  return finding('conntrack-pressure', {
    what: `the table is full: ${count} of ${max} connections`,
    fix: [`sysctl -w ${MAX}=${max * 2}`, 'conntrack -S'],
    subjects: [sysctlId(MAX)],
    severity: 'error',
  });
}

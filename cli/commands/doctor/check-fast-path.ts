import { flowFilterOf } from '../../../dataplane/fast-path/flow-filter.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { HostFacts } from '../../../inspection/node/node-facts.ts';
import { type Check, done, whenKnown } from './check.ts';

/** Checks that the fast path is as the agent was asked for it, and that nothing stands in its way. */
export const FAST_PATH_CHECK: Check = {
  id: 'fast-path',
  scope:
    'the fast path is as --fast-path asks for it; its setting holds, and none of its filters is left while it is off',
  finds: ['fast-path'],
  evaluate: ({ node, status }) =>
    whenKnown(status, ({ fastPath }) => {
      const { wanted, mode, why } = fastPath ?? OFF;
      const links = linksWithOurs(node.host);
      if (mode !== 'off') return done(settingFault(node.host), [`${mode}, on ${links} links`]);
      return done([...(why === '' ? [] : [staysOff(wanted, why)]), ...(links === 0 ? [] : [left(links)])], ['off']);
    }),
};

/** What an agent is without an answer about it. */
const OFF = { wanted: 'off', mode: 'off', why: '' };

function staysOff(wanted: string, why: string): Finding {
  return finding('fast-path', {
    what: `the fast path is asked for (--fast-path=${wanted}) and stays off: ${why}`,
    fix: ['tke-eni status'],
    subjects: [],
  });
}

function left(links: number): Finding {
  return finding('fast-path', {
    what: `the fast path is off, and ${links} links have a filter of it`,
    isOurs: true,
    fix: ['tke-eni repair'],
    subjects: [],
  });
}

/** Connection tracking sees one packet a second of a learned flow: without the setting it takes the next ones for invalid. */
function settingFault({ sysctls }: HostFacts): readonly Finding[] {
  const name = 'net.netfilter.nf_conntrack_tcp_be_liberal';
  const value = sysctls.get(name);
  if (value === undefined || value === '1') return [];
  return [
    finding('fast-path', {
      severity: 'error',
      isOurs: true,
      what: `${name} is ${value} while the fast path is on: TCP connections of Pods stall`,
      fix: ['tke-eni repair', `sysctl -w ${name}=1`],
      subjects: [],
    }),
  ];
}

function linksWithOurs({ traffic }: HostFacts): number {
  const ours = (ifKnown(traffic.filters) ?? []).flatMap((filter) => flowFilterOf(filter) ?? []);
  return new Set(ours.map(({ ifindex }) => ifindex)).size;
}

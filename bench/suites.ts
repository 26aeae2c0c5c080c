import type { BenchRow } from './row.ts';

/** A suite of benchmarks; it prints why when it has no row. */
type Suite = {
  readonly load: () => Promise<{ readonly runSuite: () => Promise<readonly BenchRow[]> }>;
  /** Not part of the default set, which ends within ten minutes on two cores that have nothing else to do. */
  readonly isNamedOnly?: true;
};

/** All suites, in the order in which they run. */
export const SUITES: Readonly<Record<string, Suite>> = {
  netlink: { load: () => import('./netlink.ts') },
  forwarding: { load: () => import('./forwarding.ts') },
  'forwarding-pods': { load: () => import('./forwarding-pods.ts'), isNamedOnly: true },
  'cni-start': { load: () => import('./cni-start.ts') },
  cni: { load: () => import('./cni.ts') },
  gr: { load: () => import('./gr.ts') },
  agent: { load: () => import('./agent.ts') },
  ipamd: { load: () => import('./ipamd.ts'), isNamedOnly: true },
  'device-plugin': { load: () => import('./device-plugin.ts') },
  cluster: { load: () => import('./cluster.ts'), isNamedOnly: true },
  cli: { load: () => import('./cli.ts') },
  scheduler: { load: () => import('./scheduler.ts') },
  'foreign-input': { load: () => import('./foreign-input.ts') },
  ccm: { load: () => import('./ccm.ts'), isNamedOnly: true },
  scale: { load: () => import('./scale.ts'), isNamedOnly: true },
};

/** Picks the suites to run: those that are named, all with the word `all`, without words the default set. @throws RangeError for an unknown name */
export function chooseSuites(words: readonly string[]): readonly string[] {
  const names = Object.keys(SUITES);
  const unknown = words.filter((word) => word !== 'all' && !names.includes(word));
  if (unknown.length > 0) {
    throw new RangeError(`no such suite: ${unknown.join(', ')}; known are ${names.join(', ')}, and all`);
  }
  if (words.includes('all')) return names;
  return names.filter((name) => (words.length > 0 ? words.includes(name) : SUITES[name]?.isNamedOnly !== true));
}

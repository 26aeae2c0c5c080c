import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { readJournalFacts } from '../support/journal-facts.ts';
import type { ProcessLife } from './process-watch.ts';
import type { Planned } from './schedule.ts';
import type { Soak } from './soak.ts';

/** Writes what is needed to look into a failure into a folder, and returns its path. */
export function keepEvidence(soak: Soak, plan: readonly Planned[], lives: readonly ProcessLife[]): string {
  const { system, tally, spec } = soak;
  const dir = join(tmpdir(), `tke-soak-${spec.seed}`);
  mkdirSync(dir, { recursive: true });
  const put = (name: string, text: string): void => writeFileSync(join(dir, name), text);
  put('violations.txt', tally.violations.join('\n'));
  put('plan.json', lines(plan));
  put('lives.json', lines(lives));
  put('requests.json', lines(system.cloud.host.seen));
  put('enis.json', JSON.stringify([...system.cloud.host.model.state.enis.values()].map(eniText), undefined, 1));
  const necs = system.cluster.server.objects(NODE_ENI_CONFIG_KIND.plural, 'networking.tke.cloud.tencent.com');
  put('necs.json', JSON.stringify(necs, undefined, 1));
  put('addresses.json', lines(soak.addresses));
  for (const node of system.nodes) {
    put(`agent-${node.name}.log`, node.logs());
    put(`slots-${node.name}.json`, lines(node.slots.map(({ netns, state }) => ({ netns: netns.name, ...state }))));
    put(`journal-${node.name}.json`, journalText(node.journalPath));
  }
  for (const ipamd of system.ipamds) put(`${ipamd.name}.log`, ipamd.logs());
  return dir;
}

function eniText(eni: { readonly ips: ReadonlyMap<string, object> }): object {
  return { ...eni, ips: [...eni.ips.values()] };
}

function lines(items: readonly unknown[]): string {
  return items.map((item) => JSON.stringify(item)).join('\n');
}

function journalText(path: string): string {
  try {
    return JSON.stringify(readJournalFacts(path), undefined, 1);
  } catch (error) {
    return String(error);
  }
}

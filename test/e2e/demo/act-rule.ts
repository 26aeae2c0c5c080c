import { join } from 'node:path';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { DIST_BIN_DIR } from '../../support/executables.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { POD_NAMESPACE } from '../../system/cluster.ts';
import type { DemoPod } from './demo-node.ts';
import { heading, quote, wrapText } from './format.ts';
import type { Stage } from './stage.ts';

/** Two columns are the indentation's. */
const COLUMNS = 78;

/**
 * A rule of an ENI is deleted while the agent of the node stands still: `tke-eni explain` names the broken hop from kernel
 * and files alone. The agent mends it when it runs again.
 */
export async function loseRule({ system, progress, print, fault }: Stage, pods: readonly DemoPod[]): Promise<void> {
  const web = podNamed(pods, 'web-0');
  const db = podNamed(pods, 'db-0');
  const { netns } = system.cloud.vpc.node(web.node.name);
  progress(`act 4: a rule of ${web.node.name} is deleted, its agent stands still`);
  print(heading('Act 4: a rule is gone'));
  const healthy = await explain(web, db);
  if (healthy.code !== 0) fault(`act 4: tke-eni explain finds fault with a healthy node:\n${healthy.text}`);
  process.kill(web.node.agentPid, 'SIGSTOP');
  try {
    await netns.ip('rule', 'delete', 'pref', '1536', 'lookup', await tableOf(netns, web));
    const broken = await explain(web, db);
    print(quote(`tke-eni explain ${POD_NAMESPACE}/web-0 --to ${db.ip}`, shorten(broken.text)));
    if (broken.code !== 1) fault(`act 4: tke-eni explain ended with ${broken.code}, not with 1`);
  } finally {
    process.kill(web.node.agentPid, 'SIGCONT');
  }
  await waitUntil(async () => (await explain(web, db)).code === 0, {
    what: 'the rule that was deleted',
    timeoutMs: 30_000,
    everyMs: 100,
  });
  progress('act 4: the agent runs on and put the rule back');
  const cure =
    'Recovery: the agent hears of it from the kernel and puts the rule back; explain finds every hop in order.';
  print(`\n${wrapText(cure, '  ')}`);
}

function podNamed(pods: readonly DemoPod[], name: string): DemoPod {
  const pod = pods.find((candidate) => candidate.name === name);
  if (pod === undefined) throw new Error(`the demo has no Pod ${name}`);
  return pod;
}

/** The link group of a Pod's host link is its ENI's table. */
async function tableOf(netns: NetnsView, { name, sandboxId }: DemoPod): Promise<string> {
  const links = await netns.ipJson('-N', '-d', 'link');
  const link = links.find((candidate) => candidate['ifalias'] === `tke-eni/${sandboxId}/eth0`);
  if (link === undefined) throw new Error(`no link on the node is ${name}'s`);
  return String(link['group']);
}

/** Keeps of the way there each hop, the evidence of the broken one, and the verdict. */
function shorten(text: string): string {
  const [subject = '', wayThere = '', ...rest] = text.split('\n\n');
  let isBroken = false;
  const hops = wayThere.split('\n').filter((line, index) => {
    const verdict = /^ {2}(\w+)/.exec(line)?.[1];
    if (verdict !== undefined) isBroken = verdict === 'BROKEN';
    return index === 0 || verdict !== undefined || isBroken;
  });
  return [subject, ...hops, '  …', rest.at(-1) ?? ''].join('\n');
}

/** Asks on the Pod's node, as somebody who is logged in there. */
async function explain(pod: DemoPod, to: DemoPod): Promise<{ readonly code: number; readonly text: string }> {
  const tool = join(DIST_BIN_DIR, 'tke-eni');
  const script = 'COLUMNS="$0" "$1" --host-root=/ explain "$2" --to "$3"; echo $?';
  const words = [String(COLUMNS), tool, `${POD_NAMESPACE}/${pod.name}`, to.ip];
  const lines = (await pod.node.containerd.run(['sh', '-c', script, ...words])).trimEnd().split('\n');
  return { code: Number(lines.at(-1)), text: lines.slice(0, -1).join('\n') };
}

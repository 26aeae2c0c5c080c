import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { parse, stringify } from 'yaml';
import { openOpsCaller } from '../support/ops-call.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial, type Trial } from './support/trial.ts';

type Written = { status: { eniInfos: [Record<string, unknown>, Record<string, unknown>] } };

const CONTRADICTIONS: readonly { readonly edit: object; readonly said: RegExp }[] = [
  { edit: { mac: '20:90:6f:ff:ff:fe' }, said: /its MAC is \S+ \(eth1, which Pods use\), and not 20:90:6f:ff:ff:fe/ },
  { edit: { eniID: 'eni-invented' }, said: /"eni-invented",.*refused: its MAC \S+ is that of eni-1/ },
];

test('agent: a supply that names another MAC or id of an ENI that Pods use cuts no Pod off, also after a restart', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 8 });
  try {
    const { node, vpc } = trial;
    const pods = [await trial.addPod(), await trial.addPod()];
    const pod = pods.find(({ ip }) => ip.startsWith('10.0.2.'));
    if (pod === undefined) throw new Error(`no Pod on eni-1: ${pods.map(({ ip }) => ip).join(', ')}`);
    const path = join(node.dir, 'node.yaml');
    for (const { edit, said } of CONTRADICTIONS) {
      const written = parse(vpc.nodeEniConfig('n1')) as Written;
      Object.assign(written.status.eniInfos[0], edit);
      const loggedBefore = trial.agent.logs().length;
      writeFileSync(`${path}.new`, stringify(written));
      renameSync(`${path}.new`, path);
      await waitUntil(() => said.test(trial.agent.logs().slice(loggedBefore)), {
        what: `${said}`,
        explain: () => trial.lastWords(),
      });
      for (const restarts of [false, true]) {
        if (restarts) {
          await trial.killAgent();
          await trial.startAgent();
        }
        // A pass that repairs something, after the refusal.
        await node.netns.ip('link', 'set', 'eth1', 'down');
        await waitUntil(async () => await isUp(trial, 'eth1'), { what: 'a repair' });
        t.true(await pod.netns.ping(vpc.outside.ip), `its Pod has its network: ${JSON.stringify({ edit, restarts })}`);
        t.is((await trial.addPod()).ip.startsWith('10.0.2.'), false, 'a new Pod is on the other ENI');
      }
      trial.writeSupply();
      await waitUntil(async () => (await problemOf(trial)) === '', { what: 'the refusal is over' });
    }
  } finally {
    await trial.close();
  }
});

/** The problem of the first ENI, as the agent's pool shows it. */
async function problemOf(trial: Trial): Promise<string> {
  const ops = openOpsCaller(`unix:${trial.agent.socketPath}`);
  try {
    const { enis } = await ops.call('pool', {});
    return enis.find(({ eniId }) => eniId === 'eni-1')?.problem ?? '';
  } finally {
    ops.close();
  }
}

async function isUp({ node }: Trial, ifname: string): Promise<boolean> {
  const [link] = await node.netns.ipJson('link', 'show', 'dev', ifname);
  const flags = link?.['flags'];
  return Array.isArray(flags) && flags.includes('UP');
}

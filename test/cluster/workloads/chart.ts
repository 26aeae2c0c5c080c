import { spawnSync } from 'node:child_process';
import { awaitServing, CCM_COMPONENT, loadImages } from '../deploy.ts';
import { shellCommandsOf } from '../doc-commands.ts';
import { HELM, PageUser, readPage } from '../page-user.ts';
import type { RealCluster } from '../real-cluster.ts';

/** Whether there is a helm to install the chart with. */
export const hasHelm = spawnSync(HELM, ['version', '--short']).status === 0;

/** Values by which the cloud controller manager makes load balancers of the cloud of a test. */
export const LOAD_BALANCER_VALUES = [
  'cloudControllerManager.enabled=true',
  'cloudControllerManager.settings.protocol=http',
  'cloudControllerManager.settings.load-balancers=clb',
] as const;

/**
 * Installs the chart as docs/install.md says, with more values, and waits until nodes give Pods addresses and the webhook,
 * which the chart has by default, is there. Answers with who ran the commands. @throws Error when they fail
 */
export async function installChart(cluster: RealCluster, values: readonly string[]): Promise<PageUser> {
  await loadImages(cluster.nodes, ['webhook', 'scheduler', CCM_COMPONENT]);
  const user = new PageUser(cluster);
  const commands = shellCommandsOf(readPage('install.md'));
  const under = (heading: string): readonly string[] =>
    commands.flatMap((block) => (block.heading === heading ? block.lines : []));
  const more = values.map((value) => ` --set ${value}`).join('');
  for (const line of under('With kustomize')) if (line.includes('create secret')) await user.sh(line);
  for (const line of under('With Helm'))
    if (!line.startsWith('make ')) await user.sh(`${line}${user.helmSettings()}${more}`);
  await awaitServing(cluster);
  await user.sh('kubectl -n kube-system rollout status deployment/tke-eni-ip-webhook --timeout=120s');
  // The first connection to it may take longer on a busy machine than the API server waits.
  await cluster.awaitKubectl(['run', 'probe', '--image=app:1', '--dry-run=server'], 'an answer of the webhook');
  return user;
}

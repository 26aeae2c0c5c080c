import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { KubeObject } from '../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, PODS } from '../kube/resource-types.ts';
import { systemClock } from '../runtime/clock.ts';
import { connectInProcess } from '../sim/kube-api/in-process.ts';
import { installKinds } from '../sim/kube-api/install-kinds.ts';
import { renderKubeconfig } from '../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../sim/kube-api/start-kube-api.ts';
import type { NetnsView } from '../sim/support/netns.ts';
import { openDoor } from '../test/system/door.ts';

/** An API server that a node reaches, with the node's NodeENIConfig in it. */
type BenchCluster = {
  /** What makes an agent use it. */
  readonly flags: Readonly<Record<string, string>>;
  /** Makes a Pod that is bound to the node, as large as Pods usually are. */
  addPod(name: string): Promise<void>;
  close(): Promise<void>;
};

const PORT = 6_443;
/** What `kubectl get pod -o json` has of an ordinary Pod beside what we read, in bytes. */
const PADDING_BYTES = 6_000;

/** Starts an API server that the namespace reaches; its NodeENIConfig is `<dir>/node.yaml`. The caller closes it. */
export async function openBenchCluster(netns: NetnsView, dir: string): Promise<BenchCluster> {
  const server = await startKubeApi();
  const door = openDoor(netns, PORT, server.accept);
  const kube = connectInProcess(server.api, { clock: systemClock }).client();
  // What the scene wrote for the file mode: an object, by the decoder of that mode.
  const nec = parse(readFileSync(join(dir, 'node.yaml'), 'utf8')) as KubeObject;
  await installKinds(kube);
  await kube.create(NODE_ENI_CONFIGS, nec);
  const kubeconfig = join(dir, 'kubeconfig');
  writeFileSync(kubeconfig, renderKubeconfig({ url: `http://${door.address}` }));
  return {
    flags: { 'supply-source': 'cluster', 'node-name': nec.metadata.name, kubeconfig },
    addPod: async (name) => {
      await kube.create(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default', annotations: { padding: 'x'.repeat(PADDING_BYTES) } },
        spec: { nodeName: nec.metadata.name, containers: [{ name: 'main', image: 'none' }] },
      });
    },
    close: async () => {
      door.close();
      await server.close();
    },
  };
}

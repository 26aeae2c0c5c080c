/**
 * Brings up a real cluster with this project deployed and keeps it until Ctrl-C: for people who want to look around.
 * `node test/cluster/main.ts [--bare] [--nodes=2]`
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { CLUSTER_STEM } from './stale-clusters.ts';

const say = (text: string) => void process.stdout.write(`${text}\n`);

const USAGE = (cluster: RealCluster, node: string) => `
The cluster is up. Its files and logs are in ${cluster.dir}. In another terminal, as root:

  export KUBECONFIG=${cluster.kubeconfig} PATH=${cluster.assets}:$PATH
  kubectl get nodes,nec,pods -A -o wide

A Pod with an address of the VPC (the image sleeps; it has ping, wget, ip, nc):

  kubectl apply -f - <<'END'
${JSON.stringify(EXAMPLE)}
END
  kubectl exec -it example -- sh

A shell on ${node}, with its files, processes and network:

  ${cluster.node(node).machine.enter(['bash']).join(' ')}

Ctrl-C ends it and removes everything.`;

const EXAMPLE = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'example', annotations: { 'tke.cloud.tencent.com/networks': 'tke-route-eni' } },
  spec: {
    containers: [
      {
        name: 'main',
        image: 'localhost/busybox:1',
        imagePullPolicy: 'Never',
        resources: {
          requests: { 'tke.cloud.tencent.com/eni-ip': '1' },
          limits: { 'tke.cloud.tencent.com/eni-ip': '1' },
        },
      },
    ],
  },
};

/** Starts it, says how to use it, and ends it on a signal. Resolves to the exit code. */
async function main(argv: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...argv],
    options: { bare: { type: 'boolean' }, nodes: { type: 'string', default: '2' } },
  });
  const count = Number(values.nodes);
  if (!Number.isInteger(count) || count < 1 || count > 9) {
    process.stderr.write(`--nodes: expected a whole number from 1 to 9, got ${values.nodes}\n`);
    return 2;
  }
  // A signal during the start ends this process at once; the next start of a cluster removes what is left then.
  say(`starting etcd, the control plane and ${count} nodes (names on this machine begin with ${CLUSTER_STEM})`);
  const names = Array.from({ length: count }, (_, index) => `node${index + 1}`);
  const cluster = await startRealCluster({ nodes: names.map((name) => ({ name })) });
  const stopped = Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  try {
    if (values.bare !== true) {
      say(`building and loading images, applying ${join('conf', 'kubernetes')}`);
      await Promise.race([cluster.deploy(), stopped]);
    }
    say(USAGE(cluster, names[0] ?? ''));
    await stopped;
    say('\nending');
  } finally {
    await cluster.close();
  }
  return 0;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));

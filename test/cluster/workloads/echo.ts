import type { NetnsView } from '../../../sim/support/netns.ts';
import type { RunResult } from '../../../sim/support/run.ts';
import type { PodOptions, SeenPod } from '../pods.ts';
import type { RealCluster } from '../real-cluster.ts';
import { ECHO_PATH, echoScript } from './echo-script.ts';

/** TCP port of the echo server in its Pod. */
export const ECHO_PORT = 8_080;

/** Pods with this run a web server that says who asks. */
export const ECHO_SERVER: PodOptions = {
  command: ['sh', '-c', echoScript(ECHO_PORT)],
  // The web server is the first process of its PID namespace, deaf to SIGTERM. Not 0: the API server would forget the Pod
  // before the kubelet has ended it.
  spec: { terminationGracePeriodSeconds: 1 },
};

/** What the echo server says. */
type Echo = {
  /** Address that the server saw. */
  readonly client: string;
  /** Name of the Pod that answered. */
  readonly pod: string;
};

/** A place to ask from. */
export type Asker = {
  readonly name: string;
  run(argv: readonly string[]): Promise<RunResult>;
};

/** Asks from inside a Pod. */
export function podAsker(cluster: RealCluster, pod: SeenPod): Asker {
  return {
    name: `Pod ${pod.name} on ${pod.node}`,
    run: (argv) => cluster.tryKubectl(['-n', pod.namespace, 'exec', pod.name, '--', ...argv]),
  };
}

/** Asks from a network namespace: a node, or the host beyond the VPC. */
export function netnsAsker(name: string, netns: NetnsView): Asker {
  return { name, run: (argv) => netns.tryRun(argv) };
}

/** Asks an echo server; undefined when there is no answer within three seconds, thrice where one is expected. */
export async function ask(asker: Asker, address: string, port: number, tries = 3): Promise<Echo | undefined> {
  for (let tried = 0; tried < tries; tried++) {
    const answer = await asker.run([
      'busybox',
      'timeout',
      '3',
      'wget',
      '-qO-',
      `http://${address}:${port}${ECHO_PATH}`,
    ]);
    const [client, pod] = answer.stdout.trim().split(' ');
    if (answer.code === 0 && client !== undefined && pod !== undefined) return { client, pod };
  }
  return undefined;
}

/** Asks when there must be no answer: once is enough. */
export async function isSilent(asker: Asker, address: string, port: number): Promise<boolean> {
  return (await ask(asker, address, port, 1)) === undefined;
}

import { startAgent } from '../../../agent/agent.ts';
import { readAgentConfig } from '../../../agent/config/agent-config.ts';
import { openNodeEvents } from '../../../agent/events/node-events.ts';
import type { HostPorts } from '../../../agent/host-ports.ts';
import { trackAgentCalls } from '../../../agent/supply/api-failures.ts';
import { CallFailures } from '../../../kube/call-failures.ts';
import { createEventRecorder } from '../../../kube/event-recorder.ts';
import type { KubeClient } from '../../../kube/kube-client.ts';
import type { Logger } from '../../../runtime/log.ts';
import type { Life } from '../life.ts';
import type { Streams } from '../streams.ts';

/** What an agent runs on. */
type AgentWorld = {
  readonly life: Life;
  readonly nodeName: string;
  readonly host: HostPorts;
  readonly streams: Streams;
  readonly log: Logger;
  readonly kube: KubeClient;
  readonly flags: readonly string[];
  /** A part of it ended by an error. */
  readonly failed: (error: Error) => void;
};

/** Starts the real agent in a life of its own. Resolves when it runs; never when it dies before. */
export async function startAgentLife(world: AgentWorld): Promise<void> {
  const { life, nodeName, host, streams, log, failed } = world;
  const { clock } = life;
  const apiFailures = new CallFailures(clock);
  const kube = trackAgentCalls(life.kube(world.kube), apiFailures);
  const random = streams.of(life.name);
  const bytes = streams.of(`${life.name} bytes`);
  const recorder = createEventRecorder({
    ...{ clock, log, random, client: kube, component: 'tke-eni-agent', host: nodeName },
  });
  await startAgent(configOf(nodeName, world.flags), {
    ...{ host, clock, log, random, release: 'simulation', kube, apiFailures, failed },
    events: openNodeEvents(recorder, nodeName, log),
    randomBytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(bytes() * 256)),
  });
}

function configOf(nodeName: string, flags: readonly string[]) {
  const own = ['--supply-source=cluster', `--node-name=${nodeName}`, '--metrics-address=', '--kubelet-dir='];
  const argv = [...new Map([...own, ...flags].map((flag) => [flag.split('=')[0], flag])).values()];
  const outcome = readAgentConfig({ argv, env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`the agent would not run: ${JSON.stringify(outcome)}`);
  return outcome.config;
}

import { join } from 'node:path';
import { childEnv } from '../../../sim/support/child-env.ts';
import { type RunResult, tryRun } from '../../../sim/support/run.ts';
import { closeScene, openScene, type Scene } from '../../e2e/support/scene.ts';
import type { CallOptions, ScenePod } from '../../e2e/support/scene-node.ts';
import { executablePath, pluginDir } from '../../support/executables.ts';
import { type MountRoom, openMountRoom } from './mount-room.ts';

/** A node with an agent, shared and exclusive ENIs of both families, and sandboxes of recorded names. */
export type AgentStage = {
  readonly scene: Awaited<ReturnType<typeof openScene>>;
  readonly node: Scene['node'];
  readonly room: MountRoom;
  /** Returns the sandbox of that name, which is made when it is first asked for. */
  pod(name: string): Promise<StagePod>;
  /** Ends a sandbox: its network namespace goes, and nobody calls DEL. */
  end(name: string): Promise<void>;
  /** Runs tke-eni on the node. */
  cli(args: readonly string[], options?: CliOptions): Promise<RunResult>;
  close(): Promise<void>;
};

/** How tke-eni is run. */
type CliOptions = {
  /** Default: the agent's. */
  readonly socketPath?: string;
  readonly env?: Readonly<Record<string, string>>;
};

/** A sandbox and how the plugin is called for it. */
export type StagePod = { readonly pod: ScenePod; options(plugin: Plugin): CallOptions };

type Plugin = NonNullable<CallOptions['plugin']>;

/** How long an address rests: longer than the stage stands. */
const COOLDOWN = '10m';

/** Brings the stage up. The caller closes it. */
export async function openAgentStage(): Promise<AgentStage> {
  const room = await openMountRoom();
  try {
    const scene = await openScene({
      ruleMode: 'compact',
      isDual: true,
      nodes: [
        {
          name: 'n1',
          enis: [{ eniId: 'eni-1', ips: 8 }],
          directEnis: [{ eniId: 'eni-d1' }, { eniId: 'eni-d2' }],
          agentFlags: {
            ...{ 'ip-cooldown': COOLDOWN, 'service-cidrs': '10.96.0.0/16', 'node-name': 'n1' },
            ...{ 'plugin-dir': pluginDir(), 'reference-plugin-dir': '' },
          },
          wrapAgent: () => room.wrap,
        },
      ],
    });
    return stageOf(scene, room);
  } catch (error) {
    await room.close();
    throw error;
  }
}

function stageOf(scene: Awaited<ReturnType<typeof openScene>>, room: MountRoom): AgentStage {
  const { node } = scene;
  const pods = new Map<string, Promise<StagePod>>();
  return {
    ...{ scene, node, room },
    pod: (name) => {
      const made = pods.get(name) ?? makePod(scene, room, name);
      pods.set(name, made);
      return made;
    },
    end: async (name) => {
      const made = await pods.get(name);
      await room.unbind(name);
      await made?.pod.netns.close();
    },
    cli: (args, { socketPath = node.agent.socketPath, env = {} } = {}) => {
      const places = ['--state-dir', node.agent.stateDir, '--socket', socketPath, '--host-root', '/'];
      const argv = node.netns.argv([...room.wrap, executablePath('tke-eni'), ...args, ...places]);
      return tryRun(argv, { env: { ...childEnv(), ...env } });
    },
    close: async () => {
      await closeScene(scene);
      await room.close();
    },
  };
}

async function makePod({ node }: Scene, room: MountRoom, name: string): Promise<StagePod> {
  const pod = await node.newPod({ name, namespace: 'shop', containerId: containerIdOf(name) });
  const CNI_NETNS = await room.bind(pod.netns, name);
  return { pod, options: (plugin) => ({ plugin, env: { CNI_NETNS } }) };
}

/** A container id that is the same in each run. */
export function containerIdOf(name: string): string {
  return Buffer.from(name).toString('hex').padEnd(64, '0');
}

/** Returns where a file of the node lies. */
export function fileOf({ node }: AgentStage, ...names: readonly string[]): string {
  return join(node.dir, ...names);
}

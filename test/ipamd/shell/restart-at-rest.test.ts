import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { type Logger, silentLogger } from '../../../runtime/log.ts';
import { type ShellScene, shellScene } from './shell-scene.ts';

const NODES = ['n1', 'n2', 'n3'];
const MINUTE_MS = 60_000;

function statusOf(scene: ShellScene, name: string): NodeEniConfigStatus {
  // Checked against its schema by the server.
  return (scene.nec(name)?.['status'] ?? {}) as NodeEniConfigStatus;
}

function isReady(scene: ShellScene, name: string): boolean {
  return statusOf(scene, name).conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

/** A cluster at rest, whose ipamd has just ended. */
async function restedScene(): Promise<ShellScene> {
  const scene = await shellScene();
  const first = await scene.start({ name: 'first' });
  await scene.until(() => first.isLeading);
  for (const name of NODES) await scene.join(name);
  await scene.until(() => NODES.every((name) => isReady(scene, name)));
  await scene.clock.advance(MINUTE_MS);
  await scene.clock.run(first.close());
  return scene;
}

function versions(scene: ShellScene): readonly (string | undefined)[] {
  return NODES.map((name) => scene.nec(name)?.metadata.resourceVersion);
}

test('startIpamd: a new leader writes nothing to nodes at rest, and tells nobody of them', async (t) => {
  const scene = await restedScene();
  const before = versions(scene);
  const warnings: string[] = [];
  const log: Logger = { ...silentLogger, warn: (message) => warnings.push(message) };
  const second = await scene.start({ name: 'second', log });
  await scene.until(() => second.isLeading);
  await scene.clock.advance(20 * MINUTE_MS);
  t.deepEqual(versions(scene), before);
  t.deepEqual(warnings, []);
  const events = scene.server.objects('events').filter((event) => {
    const involved = event['involvedObject'] as { readonly kind?: string } | undefined;
    return involved?.kind === 'NodeENIConfig' && event['type'] === 'Warning';
  });
  t.deepEqual(
    events.map((event) => event['reason']),
    [],
  );
  await scene.clock.run(second.close());
});

import test from 'ava';
import { POD_ANNOTATION } from '../../../../crd/names.ts';
import { CiliumScene } from './cilium-scene.ts';

const STATIC = { [POD_ANNOTATION.networks]: 'tke-route-eni', [POD_ANNOTATION.deletePolicy]: 'Never' };

test('a static Pod: its address is pinned to it, stays when it ends, and goes with it to another node', async (t) => {
  const scene = await CiliumScene.open();
  const ipamd = await scene.shell.start({ flags: ['--leader-elect=false', '--enable-static-ip=true'] });
  await scene.join('n1');
  await scene.join('n2');
  await scene.until(() => scene.isSettled('n1') && scene.isSettled('n2'), 'both serve');
  await scene.createPod('db-0', 'n1', STATIC);
  await scene.until(() => scene.pinOf('db-0', 'n1') !== undefined, 'pinned');
  const ip = scene.pinOf('db-0', 'n1');
  t.is(await scene.wirePod('db-0', 'n1'), ip);
  await scene.startPods('n1', 4);
  await scene.pass(30_000);
  await scene.endPod('db-0', 'n1');
  await scene.pass(300_000);
  t.is(scene.pinOf('db-0', 'n1'), ip);
  await scene.createPod('db-0', 'n1', STATIC);
  await scene.pass(5_000);
  t.is(await scene.wirePod('db-0', 'n1'), ip);
  await scene.pass(30_000);
  await scene.endPod('db-0', 'n1');
  await scene.createPod('db-0', 'n2', STATIC);
  await scene.until(() => scene.pinOf('db-0', 'n2') === ip, 'it has moved');
  t.is(await scene.wirePod('db-0', 'n2'), ip);
  t.is(scene.pinOf('db-0', 'n1'), undefined);
  await scene.until(() => scene.isSettled('n1') && scene.isSettled('n2'), 'settled');
  await scene.run(ipamd.close());
});

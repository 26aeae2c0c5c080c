import test from 'ava';
import { NODE_ANNOTATION } from '../../../crd/names.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { seedList } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { tellingSeed } from '../../support/with-seed.ts';
import { CidrScene } from './cidr-scene.ts';

/** Nodes by their block, and who wrote it. */
function blocksOf(scene: CidrScene) {
  const nodes = scene.server.objects('nodes') as readonly KubeObject[];
  return [...scene.cidrs()].flatMap(([name, cidr]) => {
    if (cidr === '') return [];
    const { annotations = {} } = nodes.find(({ metadata }) => metadata.name === name)?.metadata ?? {};
    return [{ name, cidr, isOurs: annotations[NODE_ANNOTATION.podCidrBy] !== undefined }];
  });
}

for (const seed of seedList(4)) {
  test(`SecondAllocator: in a race ours stops within seconds of the first loss, seed ${seed}`, async (t) => {
    await tellingSeed(t, async () => {
      const random = seededRandom(seed);
      const scene = new CidrScene();
      const leaders = [scene.lead()];
      await scene.clock.advance(1_000);
      // As kube-controller-manager: the first block that it has not given, whatever it finds there.
      let theirs = 0;
      let hasLost = false;
      for (let node = 0; node < 10; node++) {
        await scene.join(`n${node}`);
        await scene.clock.advance(Math.floor(random() * 200));
        if (await scene.give(`n${node}`, `10.4.${theirs}.0/24`)) {
          theirs += 1;
          // The very block that the Node has from ours is accepted too, and changes nothing.
          if (blocksOf(scene).some(({ name, isOurs }) => name === `n${node}` && !isOurs)) hasLost = true;
        }
        if (random() < 0.3) {
          leaders.shift()?.stop();
          hasLost = false;
          leaders.push(scene.lead());
          // What it finds in its first list may be as it is for long.
          await scene.clock.advance(1_000);
        }
      }
      await scene.clock.advance(5_000);
      const before = blocksOf(scene);
      const ours = before.filter(({ isOurs }) => isOurs).map(({ cidr }) => cidr);
      t.is(new Set(ours).size, ours.length);
      const others = before.filter(({ isOurs }) => !isOurs).map(({ cidr }) => cidr);
      t.is(new Set(others).size, others.length);
      // A block that both have is said on a Node, whoever was first.
      const shared = ours.filter((cidr) => others.includes(cidr));
      if (shared.length > 0) t.true(scene.problems.some(({ kind }) => kind === 'CIDROverlap'));
      t.is(leaders[0]?.allocator.found !== undefined, hasLost);
      if (!hasLost) return;
      await scene.join('later');
      await scene.clock.advance(60_000);
      t.is(scene.cidrs().get('later'), '');
    });
  });
}

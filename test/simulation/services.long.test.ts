// Points of the stories of cloud-controller-manager at which a death of its leader may spoil them, requests that may be lost, and storms.
import test from 'ava';
import { seedList } from '../../sim/support/seed.ts';
import { tellingSeed } from '../support/with-seed.ts';
import { crashAtEach, loseEach } from './crash.ts';
import { clusterRoutes, globalRoutes, tableRoutes } from './stories/ccm-routes.ts';
import { cloudNodes } from './stories/cloud-nodes.ts';
import { ingressGroup, ingressLife } from './stories/ingresses.ts';
import { serviceStorm } from './stories/service-storm.ts';
import { podTargets, serviceLife, settledService, sourceRanges } from './stories/services.ts';
import { play } from './story.ts';

for (const [name, { story, every }] of Object.entries({
  serviceLife: { story: serviceLife, every: 1 },
  podTargets: { story: podTargets, every: 2 },
  sourceRanges: { story: sourceRanges, every: 1 },
  settledService: { story: settledService, every: 1 },
  ingressLife: { story: ingressLife, every: 4 },
  ingressGroup: { story: ingressGroup, every: 1 },
  cloudNodes: { story: cloudNodes, every: 1 },
  globalRoutes: { story: globalRoutes, every: 1 },
  tableRoutes: { story: tableRoutes, every: 1 },
  clusterRoutes: { story: clusterRoutes, every: 1 },
})) {
  test.serial(`${name}: also when the leader dies at any point`, crashAtEach(story, { program: 'ccm', every }));
  // It expects something within 40 s; a request that strays comes after that.
  if (story === settledService) continue;
  test.serial(`${name}: also when any request is lost, late or astray`, loseEach(story, { program: 'ccm', every }));
}

test.serial(`${serviceStorm.title}, forty times`, async (t) => {
  t.timeout(1_800_000);
  for (const seed of seedList(40))
    await tellingSeed(t, async () => t.deepEqual((await play(serviceStorm, { seed })).violations, [], `seed ${seed}`));
});

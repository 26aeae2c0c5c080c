import test from 'ava';
import { crashAtEach, loseEach } from './crash.ts';
import { tableRoutes } from './stories/ccm-routes.ts';
import { cloudNodes } from './stories/cloud-nodes.ts';
import { ingressGroup, ingressLife } from './stories/ingresses.ts';
import { podTargets, serviceLife, settledService, sourceRanges } from './stories/services.ts';

const program = 'ccm';

test.serial('a Service is served also when the leader dies anywhere', crashAtEach(serviceLife, { program, every: 13 }));
test.serial(
  'a Service is served also when a request is lost, late or astray',
  loseEach(serviceLife, { program, every: 31 }),
);
test.serial('Pods are targets also when the leader dies anywhere', crashAtEach(podTargets, { program, every: 41 }));
test.serial(
  'a Service stays closed also when the leader dies anywhere',
  crashAtEach(sourceRanges, { program, every: 23 }),
);
test.serial(
  'nothing is settled that is not, wherever the leader dies',
  crashAtEach(settledService, { program, every: 13 }),
);
test.serial(
  'an Ingress is served also when the leader dies anywhere',
  crashAtEach(ingressLife, { program, every: 97 }),
);
test.serial(
  'a group has its rules also when the leader dies anywhere',
  crashAtEach(ingressGroup, { program, every: 29 }),
);
test.serial(
  'Nodes are what their instances are also when the leader dies anywhere',
  crashAtEach(cloudNodes, { program, every: 13 }),
);
test.serial(
  'routes are those of Nodes also when the leader dies anywhere',
  crashAtEach(tableRoutes, { program, every: 13 }),
);

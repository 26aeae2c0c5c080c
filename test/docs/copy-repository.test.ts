import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { copyRepository, OVERLAY } from '../cluster/page-user.ts';
import { createTempDir } from '../support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '../..');

test('commands of the pages run in a copy without the overlay that the user of a checkout has made', (t) => {
  const [checkout, place] = [createTempDir('checkout'), createTempDir('place')];
  t.teardown(() => {
    checkout.close();
    place.close();
  });
  cpSync(join(ROOT, 'conf'), checkout.join('conf'), { recursive: true });
  mkdirSync(checkout.join(OVERLAY), { recursive: true });
  writeFileSync(checkout.join(OVERLAY, 'kustomization.yaml'), 'resources: [../kubernetes-1.30]\n');
  copyRepository(place.path, checkout.path);
  t.false(existsSync(place.join(OVERLAY)), '`cp -r example mine` copies into a folder that is there');
  t.true(readdirSync(place.join(OVERLAY, '..')).includes('example'));
  t.true(existsSync(place.join('dist/helm/tke-eni/Chart.yaml')));
});

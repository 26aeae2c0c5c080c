// Reads one object from the API server at a URL, and prints what that ended with and how much memory it took: `node read-one.ts URL`.

import { isKubeError } from '../../kube/kube-error.ts';
import { openKubeClient } from '../../kube/open-client.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';

const rest = { env: {}, qps: 10, burst: 10, userAgent: 'test', clock: systemClock, log: silentLogger };
const client = openKubeClient({ master: process.argv[2] ?? '', ...rest });
const code = await client.get(CONFIG_MAPS, { namespace: 'default', name: 'one' }).then(
  () => 'ok',
  (error: unknown) => (isKubeError(error) ? `${error.code} ${error.reason ?? ''}` : String(error)),
);
client.close();
process.stdout.write(JSON.stringify({ code, mib: process.resourceUsage().maxRSS / 1024 }));

import { describeValue } from '../../runtime/decode.ts';
import type { PathRule } from './read-ingress.ts';

/** Most characters of a path. */
const MAX_PATH = 120;
const MAX_HOST = 80;
const PATH = /^\/[A-Za-z0-9._\-/=?&#%]*$/;
const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Returns the urls of a load balancer that serve a path, or a text for why none can. `=/a` is served for /a alone, `/a/` for
 * what begins with it. `Prefix` is by elements of the path, and a url is by characters: `/a` needs both.
 * @see cloud.tencent.com/document/product/214/9032
 */
export function mapPath({ path, pathType }: Pick<PathRule, 'path' | 'pathType'>): readonly string[] | string {
  const place = `path ${describeValue(path)}`;
  if (!path.startsWith('/')) return `${place} must begin with /`;
  if (path.length > MAX_PATH) return `${place} has ${path.length} characters, and may have ${MAX_PATH}`;
  if (!PATH.test(path))
    return `${place} has characters that a url of a load balancer cannot have: it takes letters, digits and . _ - / = ? & # %`;
  if (pathType === 'Exact') return [`=${path}`];
  if (pathType === 'ImplementationSpecific') return [path];
  const bare = path.replace(/\/+$/, '');
  return bare === '' ? ['/'] : [`=${bare}`, `${bare}/`];
}

/** Returns why a load balancer cannot have a host as its domain, or undefined. */
export function refuseHost(host: string): string | undefined {
  if (host === '') return undefined;
  if (host.length > MAX_HOST)
    return `host ${describeValue(host)} has ${host.length} characters, and may have ${MAX_HOST}`;
  if (!HOST.test(host)) return `host ${describeValue(host)} must be a name such as www.example.com or *.example.com`;
  return undefined;
}

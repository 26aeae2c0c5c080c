import { describeValue } from '../../runtime/decode.ts';
import type { DesiredRedirect } from '../balancers/desired-rules.ts';
import { blocking, type Notice, remark } from '../balancers/notice.ts';
import type { PlacedRule } from './place-rules.ts';
import type { IngressSettings } from './served-annotations.ts';

/** A url of a listener, and the rule that it is for. */
export type PlannedUrl = { readonly rule: PlacedRule; readonly url: string };

/** The redirects of an Ingress. */
type RedirectPlan = {
  /** By `urlIdOf`. */
  readonly redirects: ReadonlyMap<string, DesiredRedirect>;
  /** Urls that are there for a redirect alone. */
  readonly added: readonly PlannedUrl[];
  readonly notices: readonly Notice[];
};

const DEFAULT_CODE = 301;

/** Names a rule of a load balancer. */
export function urlIdOf(protocol: string, port: number, domain: string, url: string): string {
  return `${protocol}:${port} ${domain} ${url}`;
}

/** Plans redirects. None leads to a rule that has one itself. */
export function planRedirects(
  urls: readonly PlannedUrl[],
  settings: Pick<IngressSettings, 'autoRewrite' | 'autoRewriteCode' | 'rewriteSupport'>,
): RedirectPlan {
  const code = settings.autoRewriteCode === undefined ? DEFAULT_CODE : codeOf(settings.autoRewriteCode);
  const redirects = new Map<string, DesiredRedirect>();
  const added: PlannedUrl[] = [];
  const notices: Notice[] = [];
  const asking = urls.filter(({ rule }) => rule.rewrite !== undefined);
  const byPath = Map.groupBy(asking.length === 0 ? [] : urls, ({ rule }) => pathIdOf(rule));
  if (settings.rewriteSupport === true) for (const one of asking) addAsked(one);
  else if (asking.length > 0) {
    const message =
      'annotations: rewrite of a rule has no effect without ingress.cloud.tencent.com/rewrite-support "true"';
    notices.push(remark('AnnotationRefused', message));
  }
  if (settings.autoRewrite === true) addAutomatic();
  return { redirects, added, notices };

  function addAsked({ rule, url }: PlannedUrl): void {
    const { rewrite } = rule;
    if (rewrite === undefined) return;
    const place = `rewrite of ${placeOf(rule)}`;
    const targets = byPath.get(pathIdOf(rewrite)) ?? [];
    const target = targets.find((one) => one.url.startsWith('=') === url.startsWith('=')) ?? targets[0];
    if (target === undefined) {
      const message = `${place}: the Ingress has no rule ${rewrite.port} ${describeValue(rewrite.host)} ${describeValue(rewrite.path)}; add it`;
      notices.push(blocking('IngressInvalid', message));
    } else if (target.rule.rewrite !== undefined) {
      const message = `${place}: it leads to ${placeOf(target.rule)}, which is redirected too; name the last one`;
      notices.push(blocking('IngressInvalid', message));
    } else redirects.set(idOf(rule, url), redirectTo(target));
  }

  function addAutomatic(): void {
    const https = urls.filter(({ rule }) => rule.protocol === 'HTTPS' && rule.port === 443);
    if (https.length === 0) {
      const message =
        'annotation ingress.cloud.tencent.com/auto-rewrite: no rule is on HTTPS:443, and there is nothing to redirect to';
      notices.push(remark('AnnotationRefused', message));
    }
    const taken = new Set(urls.map(({ rule, url }) => idOf(rule, url)));
    const port80 = urls.find(({ rule }) => rule.port === 80 && rule.protocol === 'HTTPS');
    if (port80 !== undefined && https.length > 0) {
      const message = 'annotation ingress.cloud.tencent.com/auto-rewrite: HTTPS is on port 80; use another port';
      notices.push(blocking('AnnotationInvalid', message));
      return;
    }
    for (const one of https) {
      if (redirects.has(idOf(one.rule, one.url))) continue;
      const { rewrite: _, ...plain } = one.rule;
      const rule: PlacedRule = { ...plain, protocol: 'HTTP', port: 80 };
      const id = idOf(rule, one.url);
      if (taken.has(id)) {
        const message = `annotation ingress.cloud.tencent.com/auto-rewrite: ${placeOf(rule)} has a rule of its own; remove one of them`;
        notices.push(blocking('IngressInvalid', message));
        continue;
      }
      added.push({ rule, url: one.url });
      redirects.set(id, redirectTo(one));
    }
  }

  function redirectTo({ rule: { protocol, port, host }, url }: PlannedUrl): DesiredRedirect {
    return { protocol, port, domain: host, url, code };
  }
}

function pathIdOf({ port, host, path }: Pick<PlacedRule, 'port' | 'host' | 'path'>): string {
  return `${port} ${host} ${path}`;
}

function codeOf(text: '301' | '302' | '307'): 301 | 302 | 307 {
  if (text === '301') return 301;
  return text === '302' ? 302 : 307;
}

function idOf({ protocol, port, host }: PlacedRule, url: string): string {
  return urlIdOf(protocol, port, host, url);
}

function placeOf({ protocol, port, host, path }: PlacedRule): string {
  return `${protocol}:${port} ${describeValue(host)} ${describeValue(path)}`;
}

{{/* The image of a component. Takes a list: the root, the component's name. */}}
{{- define "tke-eni.image" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion -}}
{{- end -}}

{{/* Settings as the variables that agent and ipamd read: log-level becomes TKE_ENI_LOG_LEVEL. */}}
{{- define "tke-eni.settings" -}}
{{- range $flag, $value := . }}
TKE_ENI_{{ $flag | upper | replace "-" "_" }}: {{ if kindIs "slice" $value }}{{ join "," $value | quote }}{{ else if kindIs "string" $value }}{{ $value | quote }}{{ else }}{{ toJson $value | quote }}{{ end }}
{{- end }}
{{- end -}}

{{/*
What a switch comes to: true, or empty. auto: whether the server is Kubernetes 1.30 or newer, which has appArmorProfile, admission
policies, and the node in a Pod's token. Takes a list: the root, the value.
*/}}
{{- define "tke-eni.is-on" -}}
{{- $value := toString (index . 1) -}}
{{- if eq $value "auto" }}{{ if semverCompare ">=1.30.0-0" (index . 0).Capabilities.KubeVersion.Version }}true{{ end }}
{{- else if eq $value "true" }}true{{ end -}}
{{- end -}}

{{/* Settings of ipamd: those of the map, and those that every cluster has. */}}
{{- define "tke-eni.ipamd-settings" -}}
{{- $settings := merge (dict "clusterid" .Values.clusterId) .Values.ipamd.settings -}}
{{- with .Values.region }}{{ $_ := set $settings "region" . }}{{ end -}}
{{- with .Values.endpoint }}{{ $_ := set $settings "endpoint" . }}{{ end -}}
{{- include "tke-eni.settings" $settings -}}
{{- end -}}

{{/* Namespaces whose Pods must come up without the webhook: the cluster's own, and ours. */}}
{{- define "tke-eni.system-namespaces" -}}
[kube-system{{ if ne .Release.Namespace "kube-system" }}, {{ .Release.Namespace }}{{ end }}]
{{- end -}}

{{/* A file for the Prometheus operator as it is, in the release's namespace and with the labels of values. Takes a list: the root, the path. */}}
{{- define "tke-eni.monitoring-file" -}}
{{- $root := index . 0 -}}
{{- $labels := "labels: {" -}}
{{- range $name, $value := $root.Values.monitoring.labels }}{{ $labels = printf "%s%s: %s, " $labels $name ($value | quote) }}{{ end -}}
{{- $root.Files.Get (index . 1)
  | replace "namespace: kube-system" (printf "namespace: %s" $root.Release.Namespace)
  | replace "labels: {app.kubernetes.io/name: tke-eni" (printf "%sapp.kubernetes.io/name: tke-eni" $labels) -}}
{{- end -}}

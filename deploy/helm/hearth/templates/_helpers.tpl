{{- define "hearth.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "hearth.selector" -}}
app.kubernetes.io/name: hearth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hearth.labels" -}}
{{ include "hearth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "hearth.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "hearth.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "hearth.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{/* What the chart decides, over what the values say. */}}
{{- define "hearth.decided" -}}
postgres_url: os.environ/POSTGRES_URL
redis_url: os.environ/REDIS_URL
qdrant_url: {{ required "servers.qdrantUrl: the address of Qdrant, https://host:6333" .Values.servers.qdrantUrl | quote }}
qdrant_api_key: os.environ/QDRANT_API_KEY
worker: external
drain_seconds: {{ .Values.drainSeconds }}
data_dir: /run/hearth/data
capture:
  spool_dir: /spool/captures
{{- if .Values.ledger.existingClaim }}
erasure:
  ledger: /ledger/erasures.ledger
{{- end }}
{{- end }}

{{- define "hearth.gatewayConfig" -}}
{{- $hearth := mustMergeOverwrite (deepCopy (.Values.config.hearth | default dict)) (include "hearth.decided" . | fromYaml) -}}
{{- toYaml (mustMergeOverwrite (deepCopy .Values.config) (dict "hearth" $hearth)) -}}
{{- end }}

{{/* Whether a model reads facts, which workers then ask: empty where it does not. */}}
{{- define "hearth.workersAsk" -}}
{{- $hearth := .Values.config.hearth | default dict -}}
{{- $lives := list (dig "life" dict $hearth) -}}
{{- range $tenant := dig "tenants" dict $hearth -}}
{{- $lives = append $lives (dig "life" dict ($tenant | default dict)) -}}
{{- end -}}
{{- range $life := $lives -}}
{{- if dig "extraction" "model" "" ($life | default dict) }}true{{ end -}}
{{- end -}}
{{- end }}

{{/* Workers know no key of Hearth's, and the models only where they ask one. */}}
{{- define "hearth.workerConfig" -}}
{{- $hearth := mustMergeOverwrite (omit (deepCopy (.Values.config.hearth | default dict)) "keys" "virtual_keys") (include "hearth.decided" . | fromYaml) -}}
{{- $models := ternary (pick .Values.config "model_list") dict (include "hearth.workersAsk" . | not | not) -}}
{{- toYaml (mergeOverwrite (deepCopy $models) (dict "hearth" (omit $hearth "capture"))) -}}
{{- end }}

{{- define "hearth.serverVariables" -}}
{{- $secret := required "servers.existingSecret: the name of a Secret with the servers' addresses and passwords" .Values.servers.existingSecret -}}
- name: POSTGRES_URL
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ .Values.servers.postgresUrlKey }}}}
- name: REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ .Values.servers.redisUrlKey }}}}
- name: QDRANT_API_KEY
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ .Values.servers.qdrantApiKeyKey }}}}
- name: HEARTH_DATA_DIR
  value: /run/hearth/data
{{- end }}

{{- define "hearth.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "hearth.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Over nodes, and over zones where there are some. */}}
{{- define "hearth.spread" -}}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "hearth.selector" $.root | nindent 6 }}
      app.kubernetes.io/component: {{ $.component }}
{{- end }}
{{- end }}
